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

}  // namespace partita
