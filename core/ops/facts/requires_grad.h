#pragma once
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ir/graph.h"

namespace partita {

/// A value that a tensor got without autograd's knowledge (in place under no_grad, or through detach) -> the value that
/// autograd takes it for.
using HiddenWrites = std::unordered_map<const Node*, Node*>;

/// Whether each value requires grad when these placeholders do, by Node::id. Results of calls in `no_grad` or of
/// operators that are not differentiable, and numbers, never do, but hidden values do as what they are taken for. A
/// tuple does when one of its results does.
std::vector<char> requires_grad(const Graph& graph, const std::vector<bool>& placeholders,
                                const std::unordered_set<const Node*>& no_grad, const HiddenWrites& hidden);

/// Floating and complex tensors can, what is not known too; a tuple when one of its items can.
bool can_require_grad(const Meta& meta);

/// As a node's meta says; of a tuple, when one of its items does.
bool requires_grad(const Node* node);
/// Writes that to the meta. Some decompositions ask for it: that of scaled_dot_product_attention, for its mask.
void set_requires_grad(Node& node, bool needs);
/// Sets it for everything computed from values that require grad, as for eager PyTorch's results in grad mode.
void spread_requires_grad(Graph& graph);

/// Whether a call's result requires grad, outside of no_grad regions, when `needs` tells it of the inputs.
bool call_requires_grad(const Node& call, const std::function<bool(const Node*)>& needs);
bool call_requires_grad(const Node& call);  ///< the inputs' metas tell it

}  // namespace partita
