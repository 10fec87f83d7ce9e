#pragma once
#include <string>

#include "core/ir/graph.h"

namespace partita {

/// The graph in Graphviz' language: a box a node with its operator and annotation, sub graphs as clusters.
std::string to_dot(const Graph& graph);

}  // namespace partita
