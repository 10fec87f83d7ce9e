#pragma once
// Makes a graph of nodes that are told one by one.
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita::fx {

/// What stands between `before` and `after` in the text, which goes on behind it; nullopt when it has none.
std::optional<std::string_view> take_between(std::string_view& text, std::string_view before, std::string_view after);

/// The graph that is made line by line.
class NodeReader {
 public:
  int line = 1;  ///< that is read, for errors

  Diagnostic bad(std::string message) const;
  Node* find(std::string_view name) const;  ///< null: no node of that name yet

  /// A Python expression over the nodes so far, or over none.
  Result<Arg> expression(std::string_view text, bool over_nodes);
  /// Adds a node by FX's word for its kind. `name` must live as long as the reader. An output's value and a
  /// placeholder's default are its arguments.
  Status add(std::string_view op, std::string_view name, std::string_view target, Args args, Kwargs kwargs);
  /// Gives the last node what is known of it: f32[2, 3][3, 1]cpu.
  Status annotate(std::string_view annotation);
  Result<std::unique_ptr<Graph>> finish();

 private:
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  std::unordered_map<std::string_view, Node*> nodes_;
  Node* last_ = nullptr;
};

}  // namespace partita::fx
