#pragma once
#include <string>

#include "core/ir/graph.h"

namespace partita {

/// The Graphviz text that torch._functorch's draw_graph(clear_meta=True) writes, with the records and colours of
/// torch.fx.passes.graph_drawer.
std::string to_fx_dot(const Graph& graph);

/// Node.op of torch.fx: "placeholder", "get_attr", "call_function", "call_method", "output".
std::string_view fx_kind(const Node& node);

/// The graph as Graphviz text: one box per node with its operator and annotation; sub graphs are clusters.
std::string to_dot(const Graph& graph);

}  // namespace partita
