#include "app/tasks/graphviz.h"

#include <fmt/format.h>

#include "core/base/output.h"
#include "core/base/scratch.h"
#include "core/ir/fx_dot.h"
#include "core/load/file.h"
#include "core/process/run.h"

namespace partita {
namespace {

std::size_t total_nodes(const Graph& graph) {
  std::size_t n = graph.size();
  for (const auto& [target, child] : graph.children) n += total_nodes(*child);
  return n;
}

}  // namespace

bool fits_graphviz(const Graph& graph) {
  return total_nodes(graph) <= max_graphviz_nodes;
}

Result<std::string> run_graphviz(const Graph& graph, const std::string& dot, const std::string& format,
                                 const Progress* progress) {
  constexpr double seconds = 60;
  if (!fits_graphviz(graph))
    return unsupported(
        "graphviz.size",
        fmt::format("graph {} has {} nodes and Graphviz draws at most {}; use --format dot or the window's own picture",
                    graph.name, total_nodes(graph), max_graphviz_nodes));
  TRY(const ScratchFolder folder, ScratchFolder::make("graphviz"));
  const std::string source = folder.path() + "/graph.dot", picture = folder.path() + "/picture";
  TRY_DO(write_file(source, dot));
  TRY(const ProcessEnd end, run_program({"dot", "-T" + format, "-o", picture, source}, {.seconds = seconds}, progress));
  if (end.how == ProcessEnd::TimedOut)
    return unsupported("graphviz.time_limit",
                       fmt::format("dot took over {} s; use --format dot or the window", seconds));
  if (end.how == ProcessEnd::NotFound) return unsupported("graphviz.missing", "cannot start dot; install graphviz");
  if (!end.succeeded()) return unsupported("graphviz.failed", "dot failed; use --format dot or the window");
  TRY(const auto bytes, FileBytes::open(picture));
  return std::string(bytes->text());
}

Result<std::string> draw_with_graphviz(const Graph& graph, const std::string& format, const Progress* progress) {
  if (format == "dot") return to_dot(graph);
  if (format != "svg" && format != "png" && format != "pdf")
    return input_error("graphviz.format",
                       fmt::format("unknown format '{}'; svg, png, pdf and dot are written", format));
  return run_graphviz(graph, to_dot(graph), format, progress);
}

}  // namespace partita
