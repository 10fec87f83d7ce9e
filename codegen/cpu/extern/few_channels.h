#pragma once
#include "codegen/cpu/extern/convolution.h"

namespace partita::codegen {

/// A convolution of images whose results depend on few channels each: grouped ones, and those of colours. The step is
/// null where the processor has no kernel for it, or where oneDNN is faster.
Prepared prepare_few_channels(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                              const ConcreteView& weight, const std::optional<ConcreteView>& bias,
                              const ConcreteView& out);

}  // namespace partita::codegen
