#pragma once
#include <functional>
#include <unordered_set>
#include <vector>

#include "core/ir/graph.h"

namespace partita {

/// By Node::id: does the value require grad, when these placeholders do? Results of calls in `no_grad`, of operators
/// that are not differentiable, and numbers never do. A tuple does when one of its results does.
std::vector<char> requires_grad(const Graph& graph, const std::vector<bool>& placeholders,
                                const std::unordered_set<const Node*>& no_grad);

/// Floating and complex tensors can, what is not known too; a tuple when one of its items can.
bool can_require_grad(const Meta& meta);

/// As a node's meta says; of a tuple, when one of its items does.
bool requires_grad(const Node* node);
/// Writes it into the meta. Some decompositions ask: scaled_dot_product_attention's, when a mask requires grad.
void set_requires_grad(Node& node, bool needs);
/// What is computed of values whose metas say so, as eager PyTorch's results do with grad mode on.
void spread_requires_grad(Graph& graph);

/// Does one call's result (not in a no_grad region), when `needs` tells it of the inputs?
bool call_requires_grad(const Node& call, const std::function<bool(const Node*)>& needs);
bool call_requires_grad(const Node& call);  ///< the inputs' metas tell

}  // namespace partita
