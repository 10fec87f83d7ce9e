#pragma once
#include <memory>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Does a node, here or in a sub graph, call a torch-level function or method that must be resolved before the graph
/// runs? Arithmetic on plain and symbolic numbers and getitem of tuples need no resolving.
bool has_torch_calls(const Graph& graph);
/// Resolves these calls to ATen calls, in this graph without its sub graphs. Returns whether there were any. The last
/// new call keeps the old node's name, meta and origin.
/// `before_autograd`: the calls that change the grad mode stay, and autocast regions with all that is in them, because
/// the casts belong to the parts of composites too.
Result<bool> resolve_calls(Graph& graph, bool before_autograd = false);
/// Returns a copy, sub graphs included, in which these calls are resolved, and calls after x.t_() and the like read its
/// result (follow_in_place).
Result<std::unique_ptr<Graph>> with_aten_calls(const Graph& graph);

}  // namespace partita
