// Removes assertions of which their record knows that they hold: about metas, which are known.
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

bool holds(const Node& node) {
  const OpRecord* record = node.op()->is_call() ? ops().find(node.op()) : nullptr;
  if (!record || !record->views.unchanged_if || !record->schema->returns.empty() || !node.users().empty()) return false;
  const Args bound = bound_arguments(node);
  return !bound.empty() && record->views.unchanged_if(bound);
}

}  // namespace

Result<bool> remove_asserts(Graph& graph, PassContext& context) {
  return graph.eliminate_dead([&](const Node& n) { return !holds(n) || !context.may_rewrite("assertion", n); }) > 0;
}

}  // namespace partita
