#pragma once
#include <memory>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Does a node call a torch-level function or method, here or in a sub graph, that has to be resolved before it runs?
/// Arithmetic on plain and symbolic numbers and getitem of tuples run as they are.
bool has_torch_calls(const Graph& graph);
/// Makes these calls ATen calls, in this graph without its sub graphs. Tells whether there were any. The last call of a
/// node keeps the node's name, meta and origin.
Result<bool> resolve_calls(Graph& graph);
/// A copy, sub graphs included, in which these calls are ATen calls.
Result<std::unique_ptr<Graph>> with_aten_calls(const Graph& graph);

}  // namespace partita
