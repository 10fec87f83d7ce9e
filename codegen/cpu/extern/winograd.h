#pragma once
#include "codegen/cpu/extern/convolution.h"

namespace partita::codegen {

/// What a convolution of 3x3 by Winograd's algorithm is made of. With `flipped`, weights [in, out, 3, 3] are turned by
/// half a turn: a convolution's gradient by its input is such a convolution of the result's gradient.
struct WinogradCall {
  ConcreteView input, weight;
  std::optional<ConcreteView> bias;
  ConcreteView out;
  bool flipped = false;
};

/// A convolution by a kernel of our own, in blocks of rows with the work that follows it done on each. The step is null
/// where it does not pay: without AVX-512, for channels that are not adjacent or not multiples of 16, for few pixels,
/// for strides, dilation and groups.
Prepared prepare_winograd(const ExternContext& context, const ConvolutionArguments& g, const WinogradCall& call);

}  // namespace partita::codegen
