#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/ir/graph.h"

namespace partita {

/// Gives the nodes of the flow's graphs the names that the file has for the same calls. A node that the file does not
/// have keeps its name unless the file means another call by it.
class FileNames {
 public:
  explicit FileNames(const Graph& file) : file_(file) {}

  std::unique_ptr<Graph> forward(const Graph& graph);
  /// It reads values of the forward, and computes some again.
  std::unique_ptr<Graph> backward(const Graph& graph);

 private:
  void rename(Graph& graph, const std::map<std::string, std::string>& wanted);
  std::string free_name(const Graph& graph, const std::set<std::string>& taken, const std::string& stem) const;

  const Graph& file_;
  std::map<std::string, const Op*> ops_;          ///< of the forward, by its own names
  std::map<std::string, std::string> new_names_;  ///< by the flow's
};

}  // namespace partita
