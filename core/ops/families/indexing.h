#pragma once
#include "core/ops/kernels/true_positions.h"
#include "core/ops/record/record.h"

namespace partita {

/// How many elements of a mask are true: the number of an earlier call that selects by the same node, which PyTorch's
/// fake tensors remember too (FakeTensor.nonzero_memo), else a new one.
SymExpr selected_by(const FakeCall& c, const Arg& mask);

}  // namespace partita
