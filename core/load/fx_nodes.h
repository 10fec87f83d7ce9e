#pragma once
// Reads graphs that are printed node by node. Internal to core/load.
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

  Diagnostic bad(std::string message) const { return input_error("load.fx_text", std::move(message), {.line = line}); }
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

/// Reads str(GraphModule.graph): "graph():", then a node in each line, with % before the names of nodes. Strings stand
/// there without quotes; a word that is nothing else is one. Errors load.fx_text with the line within the text.
Result<std::unique_ptr<Graph>> read_print(std::string_view text);

/// Reads what Graph.print_tabular prints. Of a Python function the table has only the last part of the name; it is the
/// one of torch that PyTorch traces under this name.
Result<std::unique_ptr<Graph>> read_table(std::string_view text);

}  // namespace partita::fx
