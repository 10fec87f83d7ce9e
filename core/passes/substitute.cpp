#include "core/passes/substitute.h"

#include "core/ops/schema/schema.h"

namespace partita {

bool may_stand_for(const Node& replacement, const Node& node, const Aliases& aliases) {
  const TensorMeta *a = replacement.meta.tensor(), *b = node.meta.tensor();
  if (!a || !b || !a->strides_known || !b->strides_known) return false;
  return a->dtype == b->dtype && a->device == b->device && a->sizes == b->sizes && a->strides == b->strides &&
         aliases.may_replace(node, replacement);
}

Args bound_arguments(const Node& node) {
  const Schema* schema = find_schema(node.op());
  if (!schema) return {};
  auto bound = bind_arguments(*schema, node.args(), node.kwargs());
  return bound ? *std::move(bound) : Args();
}

}  // namespace partita
