#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/program/clamped_sum.h"
#include "core/aot/run_compiled.h"
#include "core/schedule/plan.h"
#include "core/tensor/generator.h"

namespace partita {
class Communicator;
}

namespace partita::codegen {

/// A strided view with concrete sizes, strides and offset.
struct ConcreteView {
  int buffer = 0;
  DType dtype = DType::Float32;
  Sizes sizes, strides;
  std::int64_t offset = 0;
  std::byte* at(std::byte* const* buffers) const {
    return buffers[buffer] + offset * static_cast<std::int64_t>(itemsize(dtype));
  }
};
/// Makes a concrete view; nullopt when the view is symbolic.
std::optional<ConcreteView> concrete_view(const schedule::PlanView& view);
/// The view with dimensions of size 1 in front, as many as `sizes` has; nullopt when it does not broadcast to these.
template <class View>
std::optional<View> broadcast(View view, const decltype(View::sizes)& sizes) {
  if (view.sizes.size() > sizes.size()) return std::nullopt;
  const std::size_t missing = sizes.size() - view.sizes.size();
  view.sizes.insert(view.sizes.begin(), missing, 1);
  view.strides.insert(view.strides.begin(), missing, 0);
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (view.sizes[d] != sizes[d] && view.sizes[d] != 1) return std::nullopt;
  return view;
}
/// Images of one dimension, or weights for them, as those of height 1; others as they are.
ConcreteView with_height(ConcreteView v);

/// A call that is prepared once and run many times. `buffers`: the address of each plan buffer's first element.
class ExternStep {
 public:
  virtual ~ExternStep() = default;
  virtual Status run(std::byte* const* buffers) = 0;
  /// Bytes that run() takes beside the plan's buffers, and gives back.
  virtual std::size_t scratch_bytes() const { return 0; }
};

/// The pointwise work on a call's result, which a step may do itself for some rows at a time, while they are in cache.
class ResultWork {
 public:
  virtual ~ResultWork() = default;
  /// They go through the result in the order of its memory, each over as many elements as the others.
  std::int64_t iterations = 0;
  std::int64_t alignment = 1;  ///< `begin` of run() must be a multiple of it
  /// The same work, for steps that do it in registers. `added` is a buffer of the plan.
  std::optional<ClampedSum> simple = {};
  virtual void start(std::byte* const* buffers) = 0;           ///< before the runs of one call
  virtual void run(std::int64_t begin, std::int64_t end) = 0;  ///< on any thread
  virtual Status finish() = 0;                                 ///< after them: the error that they met
};

/// Weights in layouts of a backend's own, which the calls of several executables share.
class SharedWeights {
 public:
  virtual ~SharedWeights() = default;
};

/// Results of collectives that run beside the steps of a plan. They are in memory of their own, which may be filled at
/// any time, and come into the plan's buffers when a step is about to read these.
class PendingResults {
 public:
  explicit PendingResults(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}

  /// `place`: where the result belongs, in plan buffer `buffer`.
  void add(int buffer, Tensor result, Tensor place);
  /// Waits for the results that belong in the buffer.
  Status finish(int buffer);
  void clear() { results_.clear(); }

 private:
  struct Pending {
    int buffer;
    Tensor result, place;
  };
  std::shared_ptr<Communicator> communicator_;
  std::vector<Pending> results_;
};

/// What is known when a call is prepared.
struct ExternContext {
  const schedule::ExternCall& call;
  LibraryRoutine routine = LibraryRoutine::None;  ///< that libraries have for it
  int threads = 1;
  /// True if the buffer holds the same values in every run: such weights are packed once.
  std::function<bool(int buffer)> fixed;
  Generator* generator = nullptr;  ///< outlives the prepared step
  /// The number of elements of a buffer, all of which as_strided may reach; nullopt when symbolic.
  std::function<std::optional<std::int64_t>(int buffer)> elements;
  std::function<Result<CompiledFn>(const Graph& sub_graph)> compile_sub_graph;  ///< empty: sub graphs are interpreted
  std::shared_ptr<SharedWeights> packed = {};  ///< of fixed buffers; null: each call keeps its own
  Communicator* communicator = nullptr;        ///< outlives the prepared step; null: collectives are refused
  PendingResults* pending = nullptr;           ///< the same; null: a collective is waited for where it starts
  std::shared_ptr<ResultWork> work = {};       ///< that follows the call; null: none, or none that a step could do

  /// An argument in schema order.
  const schedule::ExternCall::Argument& arg(std::size_t i) const { return call.args[i]; }
  std::optional<ConcreteView> view(std::size_t i) const;  ///< nullopt: symbolic, or not one tensor
  std::optional<double> number(std::size_t i) const;      ///< an int, float or bool literal
  std::optional<Sizes> integers(std::size_t i) const;     ///< a list of int literals
};

struct Prepared {
  std::unique_ptr<ExternStep> step;
  std::string library;     ///< the library that does the work: "oneDNN brg:avx512_core", "interpreter"
  bool does_work = false;  ///< the step runs ExternContext::work
  std::string work = {};   ///< how it does, or why not; see ExternReport
  bool on_device = false;  ///< `buffers` of the step are addresses on the device that runs the kernels
};
/// Prepares a call. `why_not` says why no library does it that has the operator; empty otherwise.
using PrepareExtern = Result<Prepared> (*)(const ExternContext& context, std::string& why_not);
/// Prepares the operator record's evaluation on tensors over the buffers, or the run of sub graphs. `why_not` also says
/// why these are interpreted.
Result<Prepared> prepare_evaluation(const ExternContext& context, std::string& why_not);

}  // namespace partita::codegen
