#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// What operators that run sub graphs, or an operator in the order of effect tokens, do with them.
enum class Control : unsigned char {
  Cond,
  WhileLoop,
  Map,
  Scan,
  Wrapper,     ///< runs its sub graph as it is
  Checkpoint,  ///< the same, and the backward computes the values within again
  GradMode,
  Autocast,
  InvokeSubgraph,
  AutogradFunction,  ///< a torch.autograd.Function: (forward, backward, *operands)
  CustomBackward,    ///< custom_backward()
  WithEffects,
  Kernel,           ///< a kernel of the user's own, which writes tensors that it gets by name
  FunctionalKernel  ///< the same, which gives their new values by name
};

struct ControlOp {
  std::string_view name;
  Control kind;
  std::size_t body = 0;                    ///< argument that holds the sub graph whose results count
  std::vector<std::size_t> graphs = {};    ///< arguments that are sub graphs; empty for wrappers around one graph
  std::vector<std::size_t> operands = {};  ///< list arguments that become the sub graphs' placeholders, in order
  int rows = -1;     ///< list argument of which the sub graph gets one row after the other; what it returns is stacked
  int carried = -1;  ///< list argument that the sub graph's first results replace in the next step
  std::string_view prefixes[2] = {};  ///< names that AOTAutograd gives the sub graphs: prefix_0, prefix_1, ...
};
/// Null for all other operators.
const ControlOp* find_control(const Op* op);
/// The operator if it runs sub graphs on lists of operands: cond, while_loop, map_impl, scan.
const ControlOp* find_region(const Op* op);

/// A value that a region's sub graphs take, in the order of their placeholders.
struct RegionOperand {
  Arg value;
  std::size_t list = 0;  ///< the argument that lists it
  std::size_t item = 0;  ///< its place in that list
  bool row = false;      ///< the sub graph gets its rows
  bool carried = false;  ///< each step replaces it
};
/// What a call hands to its sub graphs, in order.
std::vector<RegionOperand> operands_of(const ControlOp& op, const Args& args);
/// The meta of one row of a tensor: without dimension 0. Unknown for other values.
Meta row_of(const Meta& meta);
/// The sub graph that is argument `i`. Error ops.region when there is none.
Result<Graph*> region_graph(const Node& call, std::size_t i);
/// Gives the placeholders of all sub graphs the metas of their operands. Numbers that each step replaces keep what the
/// sub graph says. Error ops.region: another number of operands than placeholders.
Status give_metas_to_regions(const ControlOp& op, Node& call);
/// The metas of the results, which follow from those of the body's outputs. Where the branches of a cond differ in
/// sizes, and for what is not known, the readers' annotations count.
MetaTuple region_results(const ControlOp& op, const Node& call);
/// "prefix_N", the first that is free for each of the prefixes in `graph`.
std::vector<std::string> region_names(const ControlOp& op, const Graph& graph);

/// Runs a sub graph, or is a call of Python that changes how others are traced and computes nothing.
bool is_control(const Op* op);
/// torch._C._set_grad_enabled
const Op* set_grad_enabled();
/// What the forward of a torch.autograd.Function returns: its results, then what it saves. Error ops.region.
struct AutogradResults {
  std::size_t count = 0;
  bool single = false;  ///< not in a tuple
};
Result<AutogradResults> autograd_results(const Node& call, const Graph& forward);
/// What autograd sees of a torch.autograd.Function: (backward, results, saved, operands) gives the results, and their
/// gradients go through the sub graph `backward`, a function of them and of what was saved, to the operands.
const Op* custom_backward();
/// Runs a kernel that the user wrote, in Triton or Helion. The graph has the kernel's number in a table of PyTorch's
/// process (`kernel_idx`), and not its code.
bool is_kernel(const Op* op);
/// The tensors that such a kernel writes, by the names of its parameters: those that `tensors_to_clone` names, else all
/// that it gets, since only its code tells more (as PyTorch has it where it cannot read the code).
std::vector<std::pair<std::string, Node*>> written_by_kernel(const Node& call);
/// Error ops.kernel: the kernel cannot be run here, and what to do.
Diagnostic kernel_without_code(const Node& call);
/// The call of a kernel that gives new values in place of writing; null: there is none (Helion's).
const Op* functional_kernel(const Op* op);
/// A call of Python that begins or ends an autocast region.
bool is_autocast(const Op* op);

}  // namespace partita
