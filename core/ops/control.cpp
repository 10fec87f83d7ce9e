#include "core/ops/control.h"

#include <algorithm>

namespace partita {

const ControlOp* find_control(const Op* op) {
  static const ControlOp table[] = {
      {"higher_order.cond", Control::Cond, 1, {1, 2}, {3}},
      {"higher_order.while_loop", Control::WhileLoop, 1, {0, 1}, {2, 3}},
      {"higher_order.map_impl", Control::Map},
      {"higher_order.scan", Control::Scan},
      {"higher_order.tag_activation_checkpoint", Control::Wrapper},
      {"higher_order.wrap_activation_checkpoint", Control::Wrapper},
      {"higher_order.wrap", Control::Wrapper},
      {"higher_order.wrap_with_set_grad_enabled", Control::GradMode},
      {"higher_order.wrap_with_autocast", Control::Autocast},
      {"higher_order.invoke_subgraph", Control::InvokeSubgraph},
      {"higher_order.with_effects", Control::WithEffects},
  };
  const auto* it = std::ranges::find(table, op->name, &ControlOp::name);
  return op->kind == OpKind::Torch && it != std::end(table) ? it : nullptr;
}

const Op* set_grad_enabled() {
  static const Op* const op = Op::get(OpKind::Function, "torch._C._set_grad_enabled");
  return op;
}

bool is_autocast(const Op* op) {
  return op->name.starts_with("torch.amp.autocast_mode.");
}

}  // namespace partita
