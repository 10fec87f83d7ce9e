#pragma once
#include <string>

#include "core/ir/graph.h"

namespace partita {

/// The graph as Graphviz text: one box per node with its operator and annotation; sub graphs are clusters.
std::string to_dot(const Graph& graph);

}  // namespace partita
