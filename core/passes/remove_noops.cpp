// Removes calls that return their first argument unchanged. A row is an operator that only moves values, and the
// condition under which it moves none. Dtype, sizes, strides and memory are compared for all rows alike.
#include <algorithm>

#include "core/passes/pass.h"
#include "core/passes/substitute.h"

namespace partita {
namespace {

using Condition = bool (*)(const Args& bound);

bool always(const Args&) {
  return true;
}

bool all_integers(const Arg& list, std::int64_t value) {
  const auto* l = list.get<ArgList>();
  return l && std::ranges::all_of(l->items, [&](const Arg& a) {
           const auto* i = a.get<std::int64_t>();
           return i && *i == value;
         });
}
bool zero_widths(const Args& bound) {
  return bound.size() > 1 && all_integers(bound[1], 0);
}

bool in_order(const Args& bound) {
  const auto* dims = bound.size() > 1 ? bound[1].get<ArgList>() : nullptr;
  if (!dims) return false;
  const auto n = static_cast<std::int64_t>(dims->items.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const auto* d = dims->items[static_cast<std::size_t>(i)].get<std::int64_t>();
    if (!d || (*d + n) % n != i) return false;
  }
  return true;
}

bool same_dimension(const Args& bound) {
  return bound.size() > 2 && bound[1] == bound[2];
}
bool step_one(const Args& bound) {
  return bound.size() > 4 && bound[4] == Arg(1);
}

struct Row {
  std::string_view op;
  Condition condition;
};
constexpr Row rows[] = {
    {"aten.alias.default", always},
    {"aten.detach.default", always},  // autograd is done at these stages
    {"aten.lift_fresh_copy.default", always},
    {"aten.clone.default", always},
    {"aten.contiguous.default", always},
    {"aten._to_copy.default", always},
    {"aten.to.dtype", always},
    {"aten.to.dtype_layout", always},
    {"aten.to.device", always},
    {"prims.convert_element_type.default", always},
    {"aten.expand.default", always},
    {"aten.view.default", always},
    {"aten.reshape.default", always},
    {"aten._unsafe_view.default", always},
    {"aten.squeeze.default", always},
    {"aten.squeeze.dim", always},
    {"aten.squeeze.dims", always},
    {"aten.repeat.default", always},
    {"aten.slice.Tensor", step_one},  // equal sizes mean that it takes all elements
    {"aten.permute.default", in_order},
    {"aten.transpose.int", same_dimension},
    {"aten.constant_pad_nd.default", zero_widths},
};

Condition find(const Op* op) {
  if (op->kind != OpKind::Torch) return nullptr;
  for (const Row& row : rows)
    if (row.op == op->name) return row.condition;
  return nullptr;
}

}  // namespace

Result<bool> remove_noops(Graph& graph, PassContext&) {
  bool changed = false;
  Aliases aliases(graph);
  for (Node* node : graph) {
    const Condition condition = find(node->op());
    Node* source = condition && !node->args().empty() ? node->args()[0].node() : nullptr;
    if (!source || !condition(bound_arguments(*node))) continue;
    if (!may_stand_for(*source, *node, aliases)) continue;
    aliases.replaced(*node, *source);
    node->replace_all_uses_with(source);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace partita
