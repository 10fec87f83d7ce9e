#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// A graph of ATen calls, in-place ones and views still in, composites decomposed.
struct AtenGraph {
  std::unique_ptr<Graph> graph;
  std::unordered_set<const Node*> no_grad;  ///< calls made under torch.no_grad
};

/// Resolves torch-level calls, methods and Python operators, decomposes CompositeImplicitAutograd operators as PyTorch
/// does above autograd, and takes set_grad_enabled regions out, those of torch.export's sub graphs too. Metas of all
/// calls are known afterwards, where a record tells; their requires_grad, on which some decompositions depend, follows
/// from that of the placeholders (empty: their metas tell; shorter: false). Errors: ops.unknown, and autocast, which is
/// not supported.
Result<AtenGraph> to_aten(const Graph& graph, const std::vector<bool>& requires_grad = {});

}  // namespace partita
