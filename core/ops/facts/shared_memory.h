#pragma once
#include "core/ir/graph.h"
#include "core/ops/schema/schema.h"

namespace partita {

/// By its schema: does it share its first argument's memory?
inline bool is_view(const Node& node) {
  const Schema* schema = find_schema(node.op());
  return schema && schema->is_view && !node.inputs().empty();
}

/// The node whose memory a value is in: itself, or that of which it is a view.
inline const Node* memory_of(const Node* node) {
  while (is_view(*node)) node = node->inputs()[0];
  return node;
}

}  // namespace partita
