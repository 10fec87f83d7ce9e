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

/// The same of one call (not in a no_grad region), when `needs` tells it of the inputs.
bool call_requires_grad(const Node& call, const std::function<bool(const Node*)>& needs);

}  // namespace partita
