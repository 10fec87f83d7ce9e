#pragma once
#include "codegen/cpu/extern/convolution.h"

namespace partita::codegen {

/// A depthwise convolution of 3x3 by a kernel of our own, in blocks of rows with the work that follows it done on each.
/// The step is null without AVX-512, for channels that are not adjacent, for other strides than 1 and 2, for dilation.
Prepared prepare_depthwise(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                           const ConcreteView& weight, const std::optional<ConcreteView>& bias,
                           const ConcreteView& out);

}  // namespace partita::codegen
