#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// A graph of ATen calls: composites are decomposed, in-place calls and views remain.
struct AtenGraph {
  std::unique_ptr<Graph> graph;
  std::unordered_set<const Node*> no_grad;  ///< calls made under torch.no_grad
};

/// Resolves torch-level calls, methods and Python operators, decomposes CompositeImplicitAutograd operators as PyTorch
/// does above autograd, inlines set_grad_enabled and autocast regions, also those that torch.export keeps as sub
/// graphs, and makes autocast's casts calls.
/// Afterwards the meta of every call with a record is known. requires_grad, on which some decompositions depend, is
/// recomputed from that of the placeholders (empty: from their metas; missing entries are false). `pre_dispatch`:
/// composites that neither write nor view their arguments stay, and so do changes of the grad mode. Errors:
/// ops.unknown, ops.autocast, ops.region.
Result<AtenGraph> to_aten(const Graph& graph, const std::vector<bool>& requires_grad = {}, bool pre_dispatch = false);

}  // namespace partita
