#include "core/ir/place.h"

#include <fmt/format.h>

namespace partita {

std::string origin_text(const Node& node) {
  if (!node.origin) return {};
  const StackFrame& o = node.origin->of_user();
  if (o.file.empty()) return node.origin->modules;
  std::string text = o.line > 0 ? fmt::format("{}:{}", o.file, o.line) : o.file;
  if (!o.function.empty()) text += " in " + o.function;
  return text;
}

Where place_of(const Node& node) {
  return Where{.file = {}, .line = 0, .graph = node.graph().name, .node = node.name(), .origin = origin_text(node)};
}

Where place_of(const Node* node) {
  return node ? place_of(*node) : Where();
}

Diagnostic at_node(Diagnostic error, const Node& node) {
  if (error.where.node.empty()) {
    Where place = place_of(node);
    error.where.graph = std::move(place.graph);
    error.where.node = std::move(place.node);
    error.where.origin = std::move(place.origin);
  }
  return error;
}

NodesByPlace::NodesByPlace(const Graph& graph) : graph_(graph) {
  for (const Node* node : graph)
    if (std::string origin = origin_text(*node); node->op()->is_call() && !origin.empty())
      last_[std::move(origin)] = node;
}

const Node* NodesByPlace::find(const std::string& name, const std::string& origin) const {
  if (const Node* node = graph_.find(name)) return node;
  const auto found = last_.find(origin);
  return found == last_.end() ? nullptr : found->second;
}

}  // namespace partita
