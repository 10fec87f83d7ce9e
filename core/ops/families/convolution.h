#pragma once
#include "core/ops/record.h"

namespace partita {

/// convolution and convolution_backward as loops over images: columns of patches times a matrix.
Value eval_convolution(EvalCall& c);
Value eval_convolution_backward(EvalCall& c);
Meta fake_convolution(FakeCall& c);
Meta fake_convolution_backward(FakeCall& c);
/// conv1d/2d/3d, their transposes and padding="same".
void register_conv_composites(OpTable& t);

}  // namespace partita
