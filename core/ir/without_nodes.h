#pragma once
#include "core/ir/graph.h"

namespace partita {

/// A graph with the name, form, symbols, attributes and sub graphs of another one, which nodes are still to be put
/// into.
std::unique_ptr<Graph> without_nodes(const Graph& graph);

}  // namespace partita
