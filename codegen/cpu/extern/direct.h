#pragma once
#include "codegen/cpu/extern/convolution.h"

namespace partita::codegen {

/// A convolution of images whose results depend on few channels each, by a kernel of our own. The step is null where
/// the processor has none for it, or where oneDNN is faster.
Prepared prepare_direct(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                        const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out);

}  // namespace partita::codegen
