#pragma once
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// For more nodes Graphviz takes minutes or overflows its stack; our own layout draws those.
inline constexpr std::size_t max_graphviz_nodes = 300;
/// Has the graph, with its sub graphs, no more nodes than that?
bool fits_graphviz(const Graph& graph);

/// Gives `dot`, some drawing of the graph, to `dot -TFORMAT` in a child process and returns what that writes. Errors
/// graphviz.size, graphviz.missing, graphviz.time_limit, graphviz.failed, Fault::Cancelled; the child is killed after a
/// minute and when `progress` (may be null) says stop.
Result<std::string> run_graphviz(const Graph& graph, const std::string& dot, const std::string& format,
                                 const Progress* progress = nullptr);

/// The graph as "dot" (the source, of any size), "svg", "png" or "pdf". Errors graphviz.format and those of
/// run_graphviz.
Result<std::string> draw_with_graphviz(const Graph& graph, const std::string& format,
                                       const Progress* progress = nullptr);

}  // namespace partita
