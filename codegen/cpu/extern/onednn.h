#pragma once
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "codegen/cpu/extern/onednn_calls.h"
#include "codegen/cpu/extern/routines.h"

namespace partita::codegen {

dnnl::engine& cpu_engine();

/// oneDNN's element type; undef for dtypes that it does not compute with.
dnnl::memory::data_type onednn_type(DType dtype);

/// The view as a descriptor; nullopt for strides that oneDNN does not allow (a repeated dimension). Dimensions of size
/// 1 get the strides of a dense tensor.
std::optional<dnnl::memory::desc> describe(const ConcreteView& view);
/// The same with elements of another name.
std::optional<dnnl::memory::desc> describe(const ConcreteView& view, dnnl::memory::data_type type);

/// A row-major descriptor of the view's sizes without gaps, for arguments whose strides oneDNN accepts but ignores
/// (biases).
dnnl::memory::desc dense(const ConcreteView& view);

/// Weights in layouts of oneDNN. Holds what somebody still uses.
class PackedWeights final : public SharedWeights {
 public:
  /// The weights that `plain` describes and points at, in the layout `wanted`, into which `pack` brings them.
  std::shared_ptr<dnnl::memory> packed(const dnnl::memory& plain, const dnnl::memory::desc& wanted,
                                       const std::function<void(dnnl::memory& made)>& pack);

 private:
  struct Entry {
    dnnl::memory::desc plain, wanted;
    std::weak_ptr<dnnl::memory> memory;
  };
  std::mutex mutex_;
  std::unordered_map<const void*, std::vector<Entry>> entries_;  ///< by address
};
/// Where the packed form of a buffer is kept; null if it is not fixed.
std::shared_ptr<PackedWeights> weights_of(const ExternContext& context, int buffer);

/// One argument of a primitive, as the plan stores it and as the primitive needs it. If these differ, an input is
/// reordered before and a result after the primitive. A fixed input, which `weights` keeps, is reordered only when its
/// address changes.
class PrimitiveOperand {
 public:
  PrimitiveOperand(const ConcreteView& view, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted,
                   std::shared_ptr<PackedWeights> weights = nullptr);
  const dnnl::memory& memory() const { return same_ ? plain_ : wanted_; }
  /// Call before the primitive. Returns whether memory() is another one since.
  bool load(dnnl::stream& stream, std::byte* const* buffers);
  void attach(std::byte* const* buffers);  ///< sets the address of a result
  /// The memory of a reordered input is from now on taken for each run only.
  void keep_nothing() {
    kept_ = same_ || weights_;
    release();
  }
  bool release();                    ///< call after the primitive; returns whether memory() is gone
  void store(dnnl::stream& stream);  ///< call after the primitive

 private:
  ConcreteView view_;
  dnnl::memory plain_, wanted_;
  dnnl::memory::desc wanted_layout_;
  bool same_, kept_ = true;
  std::optional<dnnl::reorder> reorder_;
  std::shared_ptr<PackedWeights> weights_;
  std::shared_ptr<dnnl::memory> packed_;
  const void* packed_from_ = nullptr;
};

/// Primitives that run one after another.
class OnednnStep final : public ExternStep {
 public:
  struct Argument {
    int role;  ///< DNNL_ARG_...
    PrimitiveOperand operand;
    bool result = false;
  };
  struct Call {
    dnnl::primitive primitive;
    std::vector<Argument> arguments;
    std::unordered_map<int, dnnl::memory> map = {};  ///< of the arguments; made by the first run
  };
  explicit OnednnStep(int threads) : threads_(threads) {}
  Status run(std::byte* const* buffers) override;

  std::vector<Call> calls;

 private:
  int threads_;
  dnnl::stream stream_{cpu_engine()};
};

/// No step, for this reason.
Prepared refused(std::string& why_not, std::string why);

/// Sets the number of OpenMP threads that the calling thread, and so oneDNN, may use. The destructor restores it.
class OnednnThreads {
 public:
  explicit OnednnThreads(int threads);
  ~OnednnThreads();
  OnednnThreads(const OnednnThreads&) = delete;
  OnednnThreads& operator=(const OnednnThreads&) = delete;

 private:
  int before_;
};

}  // namespace partita::codegen
