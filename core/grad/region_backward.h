#pragma once
#include <functional>
#include <unordered_set>
#include <vector>

#include "core/base/result.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/requires_grad.h"
#include "core/ops/record/call.h"

namespace partita {

/// Appends the backward of a region as PyTorch's autograd functions build it, and returns the gradient of each operand;
/// null where `wants` is false. cond: a cond over the backwards of both branches. map_impl: a map over the body's.
/// scan: a scan from the last step to the first, which sums the gradients of what all steps read. while_loop: such a
/// loop. Each of them computes what it needs of the forward again from the operands; for that the forward scan returns
/// what it carried, and the forward loop the number of its steps, so `call` is changed. `grads`: one per result, null
/// where there is none. `no_grad`, `hidden`: see FunctionalGraph. Error grad.region: a while_loop that carries numbers,
/// and sub graphs that draw random numbers or have effects, which must not run twice.
Result<std::vector<Node*>> differentiate_region(Builder& build, Node& call, const ControlOp& op,
                                                const std::vector<Node*>& grads, const std::vector<bool>& wants,
                                                const std::unordered_set<const Node*>& no_grad,
                                                const HiddenWrites& hidden);

/// Appends the backward of a torch.autograd.Function (custom_backward()), and returns the gradient of each operand,
/// null where the function gives none. `grads`: one per result, null where there is none; the function gets zeros, as
/// ctx.set_materialize_grads has it, and may write to them. `is_shared`: is a gradient, or a part of its memory, also
/// that of another value, which would see such a write? Errors grad.custom_backward, and functionalize()'s for the sub
/// graph.
Result<std::vector<Node*>> differentiate_custom(Builder& build, const Node& call, const std::vector<Node*>& grads,
                                                const std::function<bool(const Node*)>& is_shared);

/// Replaces what custom_backward() calls give by their results: they compute nothing.
Status remove_custom_backwards(Graph& graph);

}  // namespace partita
