// Removes calls that return their first argument unchanged. Their records say under which condition they move no value;
// dtype, sizes, strides and memory are compared for all of them alike.
#include <algorithm>

#include "core/ops/facts/views.h"
#include "core/ops/schema/schema.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

bool moves_nothing(const Node& node) {
  const OpRecord* record = ops().find(node.op());
  if (!record) return false;
  if (const auto order = dimension_order(node)) return std::ranges::is_sorted(*order);
  if (!record->views.unchanged_if) return false;
  const Args bound = bound_arguments(node);
  return !bound.empty() && record->views.unchanged_if(bound);
}

}  // namespace

Result<bool> remove_noops(Graph& graph, PassContext& context) {
  bool changed = false;
  Aliases aliases(graph);
  for (Node* node : graph) {
    Node* source = node->op()->is_call() && !node->args().empty() ? node->args()[0].node() : nullptr;
    if (!source || !moves_nothing(*node) || !may_stand_for(*source, *node, aliases)) continue;
    if (!context.may_rewrite("no-op", *node)) continue;
    aliases.replace_uses(*node, *source);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace partita
