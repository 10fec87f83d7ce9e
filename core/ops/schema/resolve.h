#pragma once
#include "core/ir/graph.h"
#include "core/ops/schema/schema.h"
#include "core/tensor/value.h"

namespace partita {

/// A torch-level function, method or Python operator as an ATen call.
struct ResolvedCall {
  const Op* op = nullptr;
  Args args;
  Kwargs kwargs;
};

/// Chooses the overload of `base` ("aten.add") that the arguments fit, as PyTorch's parser does: the nodes' metas tell
/// tensors from numbers, the first schema that fits is taken, and Tensor overloads come before others. Error
/// ops.overload lists the candidates; ops.unknown means that there is no such operator. `numbered_enumerations`: a
/// dtype, layout or memory format may be given by its number, as in calls of torch.ops.
Result<ResolvedCall> resolve_overload(std::string_view base, const Args& args, const Kwargs& kwargs,
                                      bool numbered_enumerations = false);
/// The same for values, with positional arguments only.
Result<const Op*> resolve_values(std::string_view base, const std::vector<Value>& args);

/// Is it auto_functionalized or auto_functionalized_v2, by which PyTorch calls an operator that writes its arguments in
/// graphs without writes?
bool is_auto_functionalized(const Op* op);
/// The operator that such a call calls; null for other calls.
const Op* auto_functionalized(const Node& call);

/// Does resolve() replace calls of this operator of torch.ops? Of aten.slice without an overload, it chooses the
/// overload. Higher-order operators are taken apart: run_and_save_rng_state and run_with_rng_state, by which
/// an activation checkpoint draws the same numbers again, become calls that read and set the generator's state around
/// the call of their operator; auto_functionalized of an operator with a meaning of the user's becomes its call on
/// clones; flex_attention becomes its products, and its score_mod and mask_mod on whole tensors.
bool is_taken_apart(const Op* op);

/// Appends ATen calls before `node` for a dynamo-level call (torch.nn.functional.dropout(x, 0.1, True, False),
/// x.view(-1), a + b, x[:, 1:]) and returns the value that replaces it. ATen calls are returned unchanged. Error
/// ops.unknown names the callable.
Result<Arg> resolve(Node& node);

}  // namespace partita
