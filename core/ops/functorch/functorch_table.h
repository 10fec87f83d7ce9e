#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Is the operator in torch._functorch.compilers.default_decompositions?
bool in_functorch_table(const Op* op);
/// Builds before the call what that table replaces it by, call for call as PyTorch traces it, and returns the value. Of
/// half types most are computed in float32. Does not erase the call.
Result<Arg> decompose_by_functorch_table(Node& call);

}  // namespace partita
