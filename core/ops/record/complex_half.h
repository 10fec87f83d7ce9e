#pragma once
#include <optional>

#include "core/ops/record/record.h"

namespace partita {

/// Does PyTorch have a CPU kernel of the operator for complex32? It has few: no sum, product of matrices or quotient.
bool takes_complex_half(const Op* op);
/// Error ops.dtype for one that has none.
Diagnostic complex_half_error(const Op& op, const Node* node);

/// complex32 is computed as the half types are: in single precision, and the results are rounded. Nullopt when the call
/// has no such argument or result, writes, or computes nothing. Raises what the call does.
std::optional<Value> eval_complex_half(const OpRecord& record, const EvalCall& call, const Node* node);

}  // namespace partita
