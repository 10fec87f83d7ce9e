#include "core/ops/functorch/functorch.h"

#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/functorch/vmap.h"

namespace partita {

Functorch functorch_call(const Op* op) {
  if (op->kind != OpKind::Function || !op->name.starts_with("torch.")) return Functorch::None;
  static constexpr std::pair<std::string_view, Functorch> names[] = {
      {"lazy_load_decompositions", Functorch::Nothing},
      {"_vmap_increment_nesting", Functorch::BeginVmap},
      {"_add_batch_dim", Functorch::AddBatch},
      {"_remove_batch_dim", Functorch::RemoveBatch},
      {"_vmap_decrement_nesting", Functorch::EndVmap},
      {"_saved_tensors_hooks_disable", Functorch::Nothing},
      {"_saved_tensors_hooks_enable", Functorch::Nothing},
      {"_grad_increment_nesting", Functorch::BeginGrad},
      {"_grad_decrement_nesting", Functorch::EndGrad},
      {"set_inplace_requires_grad_allowed", Functorch::Nothing},
      {"_wrap_for_grad", Functorch::Wrap},
      {"_set_tensor_requires_grad", Functorch::Unwrap},
      {"_unwrap_for_grad", Functorch::Unwrap},
      {"_autograd_grad", Functorch::Gradient},
      {"_jvp_increment_nesting", Functorch::BeginJvp},
      {"_set_fwd_grad_enabled", Functorch::Nothing},
      {"_enter_dual_level", Functorch::Nothing},
      {"_maybe_load_decompositions", Functorch::Nothing},
      {"_make_dual", Functorch::MakeDual},
      {"_unpack_dual", Functorch::UnpackDual},
      {"_exit_dual_level", Functorch::Nothing},
      {"_jvp_decrement_nesting", Functorch::EndJvp}};
  const std::string_view name = std::string_view(op->name).substr(op->name.rfind('.') + 1);
  for (const auto& [known, call] : names)
    if (name == known) return call;
  return Functorch::None;
}

namespace {

/// A tensor that is wrapped becomes a value of its own: what else reads it is not differentiated.
Result<Node*> take_argument(Node* call, bool wrap) {
  Node* value = call->args().empty() ? nullptr : call->args()[0].node();
  if (!value) return input_error("ops.func_grad", call->op()->name + " takes no tensor", place_of(*call));
  Node* next = call->next();
  if (wrap) {
    Builder build(call->graph(), call, call->origin);
    TRY(value, catch_raised<Node*>([&] { return build.call("aten.alias.default", {value}); }));
    next = value;
  }
  TRY_DO(replace_uses(*call, value));
  call->graph().erase(call);
  return next;
}

Result<Node*> end_jvp(Node* end) {
  Node* const next = end->next();
  Node* begin = end;
  for (bool open = true; open;) {
    Node* const node = begin->previous();
    if (!node) return input_error("ops.func_grad", end->op()->name + " ends no jvp", place_of(*end));
    if (functorch_call(node->op()) == Functorch::MakeDual) {
      TRY_DO(replace_uses(*node, node->args()[0]));
      end->graph().erase(node);
    } else {
      open = functorch_call(node->op()) != Functorch::BeginJvp;
      begin = node;
    }
  }
  for (Node* node : {begin, end})
    if (node->users().empty()) end->graph().erase(node);
  return next;
}

}  // namespace

Result<Node*> follow_functorch(Node* call) {
  Node* const next = call->next();
  switch (functorch_call(call->op())) {
    case Functorch::Nothing:
      if (call->users().empty()) call->graph().erase(call);
      break;
    case Functorch::AddBatch:
    case Functorch::RemoveBatch:
      TRY_DO(give_vmap_meta(*call));
      break;
    case Functorch::EndVmap:
      return replace_vmap(call);
    case Functorch::Gradient:
      return replace_gradient(call);
    case Functorch::Wrap:
      return take_argument(call, true);
    case Functorch::Unwrap:
      return take_argument(call, false);
    case Functorch::UnpackDual:
      return replace_tangent(call);
    case Functorch::EndJvp:
      return end_jvp(call);
    case Functorch::MakeDual: {  // stays while tangents of what is computed from it may be asked for
      const Node* primal = call->args().empty() ? nullptr : call->args()[0].node();
      if (!primal) return input_error("ops.func_grad", call->op()->name + " takes no tensor", place_of(*call));
      if (!call->meta.known()) call->meta = primal->meta;
      break;
    }
    case Functorch::BeginJvp:
    case Functorch::BeginGrad:
    case Functorch::EndGrad:
    case Functorch::BeginVmap:
    case Functorch::None:
      break;
  }
  return next;
}

}  // namespace partita
