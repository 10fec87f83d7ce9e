#pragma once
#include "core/ops/record/call.h"

namespace partita {

/// The calls by which dynamo's graphs record torch.vmap and torch.func.grad, vjp, jvp and what is made of these
/// (torch/_functorch/predispatch.py, eager_transforms.py).
enum class Functorch : unsigned char {
  None,
  Nothing,  ///< changes how others are recorded, which graphs need not know
  BeginVmap,
  AddBatch,
  RemoveBatch,
  EndVmap,
  BeginGrad,  ///< what autograd does not see here (torch.no_grad), it does not see of the calls until EndGrad
  EndGrad,
  Wrap,    ///< _wrap_for_grad: the tensor by which is differentiated
  Unwrap,  ///< gives its argument
  Gradient,
  BeginJvp,
  MakeDual,    ///< (primal, tangent): a tensor by which the jvp differentiates
  UnpackDual,  ///< gives (value, its tangent)
  EndJvp
};
/// None for other calls.
Functorch functorch_call(const Op* op);

/// Takes in such a call, after the calls before it, which are ATen calls by now: the call that ends a vmap replaces it
/// (core/ops/functorch/vmap.h), and that of autograd becomes the calls of the backward. Changes of the grad mode must
/// still be there. Returns the call to go on with, which is the first new one. Errors: ops.vmap, ops.func_grad.
Result<Node*> follow_functorch(Node* call);

/// Replace _autograd_grad(outputs, inputs, grad_outputs) and _unpack_dual(value) by the calls that compute what they
/// give.
Result<Node*> replace_gradient(Node* call);
Result<Node*> replace_tangent(Node* call);

}  // namespace partita
