#pragma once
#include "core/ops/record/record.h"

namespace partita {

/// Evaluate convolution and its gradient by loops over images; each multiplies a matrix by columns of patches.
Value eval_convolution(EvalCall& c);
Value eval_convolution_backward(EvalCall& c);
Meta fake_convolution(FakeCall& c);
Meta fake_convolution_backward(FakeCall& c);

}  // namespace partita
