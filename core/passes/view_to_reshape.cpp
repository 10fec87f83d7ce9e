// view needs strides that allow it; reshape copies when they do not. After this pass no pass looks for view, and the
// layout of its argument may be chosen freely.
#include "core/passes/aliases.h"
#include "core/passes/pass.h"

namespace partita {

Result<bool> view_to_reshape(Graph& graph, PassContext&) {
  static const Op* const view = Op::torch("aten.view.default");
  static const Op* const reshape = Op::torch("aten.reshape.default");
  bool changed = false;
  const Aliases aliases(graph);
  for (Node* node : graph) {
    if (!node->is(view) || aliases.mutated(*node)) continue;  // a write through the view must reach the viewed tensor
    node->set_op(reshape);
    changed = true;
  }
  return changed;
}

}  // namespace partita
