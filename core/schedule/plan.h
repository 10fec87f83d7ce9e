#pragma once
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/ir/graph.h"
#include "core/loops/loop.h"
#include "core/loops/target.h"

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
  SymExpr elements;        ///< size of the whole storage
  std::size_t offset = 0;  ///< Temporary: bytes into the arena, 64-byte aligned; set when elements are concrete
  Device device;           ///< the device that holds it
};

/// A strided view of a buffer, for calls and outputs.
struct PlanView {
  int buffer = 0;  ///< -1: None, in a list of optional tensors or as a result
  DType dtype = DType::Float32;
  SymList sizes, strides;
  SymExpr offset = 0;
};

struct KernelCall {
  int kernel = 0;            ///< index into Plan::kernels
  std::vector<int> buffers;  ///< one for each non-scratch Kernel::buffers, in order
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
  std::string origin;  ///< node name
  Device device;       ///< the device that runs it
  /// For cond, while_loop and other calls of sub graphs: a graph of this one call, which is interpreted. It takes
  /// `args` and returns `results`.
  std::shared_ptr<const Graph> graph = {};
};

struct Plan {
  loops::Target target;  ///< the target it was made for
  std::vector<PlanBuffer> buffers;
  std::vector<loops::Kernel> kernels;
  std::vector<std::variant<KernelCall, ExternCall>> steps;  ///< in execution order
  /// What forward returns: a view, a literal, or a symbolic int.
  std::vector<std::variant<PlanView, Arg, SymExpr>> outputs;
  std::vector<Meta> promised;      ///< metas of the outputs, as the graph says them
  std::vector<TensorMeta> inputs;  ///< metas of the graph's placeholders; actual sizes bind the symbols
  std::size_t arena_bytes = 0;
  std::vector<Guard> guards = {};  ///< of a plan with symbols: the sizes for which it is right
  /// Holds the nodes of symbolic numbers in the calls' literals, if there are any.
  std::shared_ptr<const Graph> graph = {};
  /// The symbols in kernels, and their values in this plan; empty if there are none, or before instantiate().
  std::map<std::string, std::int64_t> symbols = {};
};

std::string print(const Plan& plan);
/// The plan buffers that a step writes, each once.
std::vector<int> written_by(const Plan& plan, const std::variant<KernelCall, ExternCall>& step);

}  // namespace partita::schedule
