#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Checks what holds for a graph at every stage: names are unique, inputs belong to the graph and come before their
/// use, use lists match the arguments, placeholders come first, and there is one output, at the end. Collects every
/// violation. What else holds from a stage on, verify(graph, stage) checks
/// (core/functionalize/stage_rules.h).
std::vector<Diagnostic> verify(const Graph& graph);

}  // namespace partita
