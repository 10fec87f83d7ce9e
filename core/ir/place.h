#pragma once
#include <string>
#include <unordered_map>

#include "core/base/raise.h"
#include "core/ir/graph.h"

namespace partita {

/// The place that a diagnostic about this node names: graph, node and the user's source line.
Where place_of(const Node& node);
Where place_of(const Node* node);  ///< empty for null
/// Adds the node's place to an error. A place that the error already has is kept.
Diagnostic at_node(Diagnostic error, const Node& node);
/// catch_raised() of work on this node, whose place its error gets.
template <class T, class F>
Result<T> catch_raised_at(const Node& node, F f) {
  Result<T> result = catch_raised<T>(f);
  if (!result) return at_node(std::move(result).error(), node);
  return result;
}
/// "FILE:LINE in FUNCTION"; the module path when there is no source line, empty when nothing is known.
std::string origin_text(const Node& node);

/// Finds the nodes of a graph from which those of another one, made of it, come. The graph must outlive it.
class NodesByPlace {
 public:
  explicit NodesByPlace(const Graph& graph);
  /// The node of this name, else the last call that `origin`, as origin_text() gives it, is the place of; null: none.
  const Node* find(const std::string& name, const std::string& origin) const;

 private:
  const Graph& graph_;
  std::unordered_map<std::string, const Node*> last_;  ///< by place
};

}  // namespace partita
