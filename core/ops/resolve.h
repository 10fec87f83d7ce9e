#pragma once
#include "core/ir/graph.h"
#include "core/ops/schema.h"
#include "core/tensor/value.h"

namespace partita {

/// A call as ATen: what a torch-level function, method or Python operator means.
struct ResolvedCall {
  const Op* op = nullptr;
  Args args;
  Kwargs kwargs;
};

/// Picks the overload of `base` ("aten.add") that the arguments fit, as PyTorch's parser does: tensors and numbers told
/// apart by the nodes' metas, first fitting schema, Tensor overloads before the others. Error ops.overload lists the
/// candidates; ops.unknown says that there is no such operator.
Result<ResolvedCall> resolve_overload(std::string_view base, const Args& args, const Kwargs& kwargs);
/// The same by values, positional arguments only.
Result<const Op*> resolve_values(std::string_view base, const std::vector<Value>& args);

/// A dynamo-level call (torch.nn.functional.dropout(x, 0.1, True, False), x.view(-1), a + b, x[:, 1:]) as ATen calls,
/// appended before `node`; returns the value that replaces it. ATen calls come back as they are. Error ops.unknown
/// names the callable.
Result<Arg> resolve(Node& node);

}  // namespace partita
