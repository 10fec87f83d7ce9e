#pragma once
// A graph of a test through the whole flow.
#include <memory>
#include <string>

#include "core/aot/aot.h"

namespace partita::testing {

/// The names of the stages that ran, in order.
inline std::string stages_of(const AotGraphs& graphs) {
  std::string text;
  for (const StageRun& stage : graphs.stages) text += (text.empty() ? "" : " ") + std::string(row_of(stage.stage).name);
  return text;
}

/// How often a graph and its sub graphs call an operator.
inline int count(const Graph& graph, std::string_view op) {
  int n = 0;
  for (const Node* node : graph) n += node->op()->name == op;
  for (const auto& [name, child] : graph.children) n += count(*child, op);
  return n;
}

inline Result<AotGraphs> made(const std::unique_ptr<Graph>& graph, const AotOptions& options) {
  return aot(*graph, nullptr, options);
}

}  // namespace partita::testing
