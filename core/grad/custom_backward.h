#pragma once
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/ops/record/call.h"

namespace partita {

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
