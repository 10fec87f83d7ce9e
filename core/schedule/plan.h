#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/ir/graph.h"
#include "core/loops/loop.h"
#include "core/loops/target.h"
#include "core/tensor/value.h"

namespace partita::schedule {

/// One piece of memory of a plan. A view uses its base's buffer.
struct PlanBuffer {
  enum class Kind : std::uint8_t {
    Input,      ///< index: graph input; begins at the tensor's first element; never written unless the graph mutates it
    Constant,   ///< attribute; begins at the tensor's first element; may be prepacked
    Temporary,  ///< at `offset` in the plan's arena
    Output,     ///< given to the caller; a later run never overwrites it while the caller holds it
  };
  Kind kind = Kind::Temporary;
  int index = 0;
  std::string attribute;  ///< Constant: name in Graph::attributes
  DType dtype = DType::Float32;
  SymExpr elements;         ///< size of the whole storage
  std::size_t offset = 0;   ///< Temporary: bytes into the arena, 64-byte aligned; set when elements are concrete
  Device device;            ///< the device that holds it
  std::string origin = {};  ///< the graph node whose value it holds first, for people
};

/// A strided view of a buffer, for calls and outputs.
struct PlanView {
  int buffer = 0;  ///< -1: None, in a list of optional tensors or as a result
  DType dtype = DType::Float32;
  SymList sizes, strides;
  SymExpr offset = 0;
};

/// An input that is no tensor and no number, such as a device mesh, as a result.
struct HandedOn {
  int input = 0;
};

/// What forward returns: a view, a literal, a symbolic int, or what it was given.
using PlanOutput = std::variant<PlanView, Arg, SymExpr, HandedOn>;

struct KernelCall {
  int kernel = 0;            ///< index into Plan::kernels
  std::vector<int> buffers;  ///< one for each non-scratch Kernel::buffers, in order
};

/// Why two steps are not one kernel, although one reads what the other makes.
#define PARTITA_APART(V)                                                                              \
  V(Off, "fusion is switched off")                                                                    \
  V(Call, "a library routine or an evaluation makes one of them, and takes no work of others")        \
  V(CallRead, "the call's result is read by other steps, too, so it must be in memory")               \
  V(CallWork, "only elementwise work on one result, in the order of its memory, can follow the call") \
  V(Writes, "one of them fills its memory by several loops, one after another")                       \
  V(First, "the reader became part of another kernel first")                                          \
  V(Many, "too many kernels could have taken the work; the latest were tried")                        \
  V(Order, "a step that is not part of either must run between them")                                 \
  V(Space, "their loops run over different sizes")                                                    \
  V(Deep, "their values would nest too deep")                                                         \
  V(Incomplete, "a value would be needed before the pass over it is complete")                        \
  V(Unrelated, "they share no memory that is worth reading once")                                     \
  V(Streams, "one kernel would read and write too many memories")                                     \
  V(Gather, "the inner loop would gather: its index would need a division")                           \
  V(Rows, "there are too few rows, so that work which can run on all threads would not")              \
  V(Columns, "a sum over columns would compute each element again")                                   \
  V(Overwrite, "one overwrites memory that the other still reads")
enum class Apart : std::uint8_t {
#define V(name, text) name,
  PARTITA_APART(V)
#undef V
};
std::string_view reason(Apart why);  ///< as a clause: "fusion is switched off"

/// Two steps of a plan that stayed apart. `second` reads what `first` makes.
struct StepsApart {
  std::size_t first = 0, second = 0;
  Apart why = Apart::First;
};

/// A call of a library or of the operator record's eval: GEMM, convolution, sort, and what has no lowering.
struct ExternCall {
  using Argument = std::variant<Arg, PlanView, std::vector<PlanView>>;  ///< Arg holds only literals
  const Op* op = nullptr;
  std::vector<Argument> args;     ///< in schema order
  std::vector<PlanView> results;  ///< where to write the results; strides are those of the graph's metas
  /// Pointwise work on the result while it is in cache. Input 0 is an element of the result; inputs 1, 2, ... are
  /// `epilogue_inputs`.
  std::shared_ptr<const loops::ScalarBuilder> epilogue;
  loops::Scalar epilogue_value;
  std::vector<PlanView> epilogue_inputs;
  std::vector<std::string> epilogue_origins;  ///< graph nodes of the epilogue, in order; its scalars' sources count it
  std::string origin;                         ///< node name
  Device device;                              ///< the device that runs it
  /// For cond, while_loop and other calls of sub graphs: a graph of this one call, which is interpreted. It takes
  /// `args` and returns `results`.
  std::shared_ptr<const Graph> graph = {};
  /// Argument 0 is read as if so many zeros lay around it: before and after each of its last dimensions, the last one
  /// first. Empty: none.
  std::vector<std::int64_t> around = {};
  /// The argument whose elements are narrower than those that the call computes with, as if they had been cast; -1:
  /// none.
  int narrow = -1;
};
/// The views of an argument, which may be const.
auto views_in(auto& argument) {
  using View = std::remove_pointer_t<decltype(std::get_if<PlanView>(&argument))>;
  if (auto* view = std::get_if<PlanView>(&argument)) return std::span<View>(view, 1);
  auto* list = std::get_if<std::vector<PlanView>>(&argument);
  return list ? std::span<View>(*list) : std::span<View>();
}
/// The tensor with zeros around it, as ExternCall::around says. Errors are those of Tensor::empty.
Result<Tensor> with_zeros(const Tensor& tensor, std::span<const std::int64_t> around);
/// Casts the argument that ExternCall::narrow names. Errors are those of Tensor::to.
Status widen_narrow(int narrow, DType dtype, std::vector<Value>& args);

struct Plan {
  loops::Target target;  ///< the target it was made for
  std::vector<PlanBuffer> buffers;
  std::vector<loops::Kernel> kernels;
  std::vector<std::variant<KernelCall, ExternCall>> steps;  ///< in execution order
  std::vector<PlanOutput> outputs;
  std::vector<Meta> promised;      ///< metas of the outputs, as the graph says them
  std::vector<TensorMeta> inputs;  ///< metas of the graph's placeholders; actual sizes bind the symbols
  std::size_t arena_bytes = 0;
  std::vector<Guard> guards = {};      ///< of a plan with symbols: the sizes for which it is right
  std::vector<StepsApart> apart = {};  ///< why steps are no larger, in the order of the readers
  /// Holds the nodes of symbolic numbers in the calls' literals, if there are any.
  std::shared_ptr<const Graph> graph = {};
  /// The symbols in kernels, and their values in this plan; empty if there are none, or before instantiate().
  std::map<std::string, std::int64_t> symbols = {};
};

/// As text, a buffer or a step on each line.
std::string print(const Plan& plan);
/// The graph nodes that a step computes, in order: those fused into a kernel, or a call's and those of its epilogue.
std::vector<std::string> step_origins(const Plan& plan, const std::variant<KernelCall, ExternCall>& step);
/// The plan buffers that a step uses, inputs before results, repeats included.
std::vector<int> used_by(const std::variant<KernelCall, ExternCall>& step);
/// The plan buffers that a step writes, each once.
std::vector<int> written_by(const Plan& plan, const std::variant<KernelCall, ExternCall>& step);

}  // namespace partita::schedule
