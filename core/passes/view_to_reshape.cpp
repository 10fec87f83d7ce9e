// view needs strides that allow it; reshape copies when they do not. After this pass no pass looks for view, and the
// layout of its argument may be chosen freely.
#include "core/ops/record/record.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {

Result<bool> view_to_reshape(Graph& graph, PassContext& context) {
  bool changed = false;
  const Aliases aliases(graph);
  for (Node* node : graph) {
    const OpRecord* record = ops().find(node->op());
    if (!record || record->role != Role::OtherSizes) continue;
    if (aliases.mutated(*node)) continue;  // a write through the view must reach the viewed tensor
    if (!context.may_rewrite("reshape", *node)) continue;
    node->set_op(Op::torch("aten.reshape.default"));
    changed = true;
  }
  return changed;
}

}  // namespace partita
