#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "core/functionalize/functionalize.h"
#include "core/ops/facts/control.h"

namespace partita {

/// A region (cond, while_loop, map_impl, scan) whose sub graphs write nothing: they return the new values of what they
/// wrote.
struct FunctionalRegion {
  std::vector<std::unique_ptr<Graph>> graphs;  ///< one for each of ControlOp::graphs
  /// In the order of the sub graphs' placeholders. What a step of a loop writes is carried from then on.
  std::vector<RegionOperand> operands;
  std::vector<std::size_t> position;                 ///< of the call's results among the new ones
  std::vector<std::pair<Arg, std::size_t>> written;  ///< operands of the call, and which result they become
};

/// Raises functionalize.sub_graph if a call of the sub graph writes, which `attribute` holds. The backward of a
/// torch.autograd.Function may: it is made functional when it is needed.
void refuse_writes(const Node& attribute, const Graph& child);

/// Makes the sub graphs of `call` functional. `wants`: which operands require grad. Calls under no_grad in them and
/// hidden writes are added to those of `into`. Errors functionalize.sub_graph: a write that PyTorch refuses too,
/// because steps would see each other's in no defined order (map), or because it changes what is carried anyway.
Result<FunctionalRegion> functionalize_region(const Node& call, const ControlOp& op, const std::vector<bool>& wants,
                                              FunctionalGraph& into);

}  // namespace partita
