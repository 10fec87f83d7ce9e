#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Structure of a graph at every stage: unique names, inputs defined before use and in the same graph, use lists equal
/// to the arguments, one output, at the end, placeholders first. Collects every violation. Stages' own rules
/// (ops/rules.h) come on top.
std::vector<Diagnostic> verify(const Graph& graph);

}  // namespace partita
