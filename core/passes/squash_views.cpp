// Squashes chains of views: permute of permute, transpose of transpose, t of t, as_strided of as_strided. Dimension
// shuffles are treated as permutations. A chain of two becomes aten.permute of the composed order, or the source itself
// if that order is the identity.
#include <algorithm>

#include "core/ops/facts/views.h"
#include "core/ops/schema/schema.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

bool views_storage(const Node& node) {
  const OpRecord* record = ops().find(node.op());
  return record && record->role == Role::ViewsStorage;
}

/// as_strided, or its copy.
bool addresses_storage(const Node& node) {
  const Schema* schema = node.op()->kind == OpKind::Torch ? find_schema(node.op()) : nullptr;
  return schema && schema->index_of("self") == 0 && schema->index_of("size") == 1 && schema->index_of("stride") == 2 &&
         schema->index_of("storage_offset") == 3;
}

/// Squashes as_strided of as_strided, and copies of it. Both address the storage; without an offset of its own, the
/// outer one starts where the inner one starts.
bool squash_as_strided(Node* node, PassContext& context) {
  Node* inner = addresses_storage(*node) ? node->args()[0].node() : nullptr;
  if (!inner || !views_storage(*inner) || !context.may_rewrite("as_strided", *node)) return false;
  Args args = bound_arguments(*node);
  const Args through = bound_arguments(*inner);
  args[0] = through[0];
  if (args[3].is_none()) args[3] = through[3];
  node->set_args(std::move(args), {});
  return true;
}

bool squash(Node* node, const Aliases& aliases, PassContext& context) {
  const auto outer = dimension_order(*node);
  Node* middle = outer ? node->args()[0].node() : nullptr;
  const auto inner = middle ? dimension_order(*middle) : std::nullopt;
  Node* source = inner ? middle->args()[0].node() : nullptr;
  if (!source) return false;
  std::vector<std::int64_t> order;
  for (std::int64_t d : *outer) order.push_back((*inner)[static_cast<std::size_t>(d)]);
  if (std::ranges::is_sorted(order)) {
    if (!may_stand_for(*source, *node, aliases) || !context.may_rewrite("order undone", *node)) return false;
    node->replace_all_uses_with(source);
    return true;
  }
  if (!context.may_rewrite("orders composed", *node)) return false;
  std::vector<Arg> dims;
  for (std::int64_t d : order) dims.emplace_back(d);
  node->set_op(Op::torch("aten.permute.default"));
  node->set_args({source, Arg::list(std::move(dims))}, {});
  return true;
}

}  // namespace

Result<bool> squash_views(Graph& graph, PassContext& context) {
  bool changed = false;
  const Aliases aliases(graph);
  for (Node* node : graph)
    if (squash(node, aliases, context) || squash_as_strided(node, context)) changed = true;
  if (changed) graph.eliminate_dead([](const Node& n) { return !dimension_order(n) && !views_storage(n); });
  return changed;
}

}  // namespace partita
