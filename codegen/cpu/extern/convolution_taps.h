#pragma once
#include "codegen/cpu/extern/convolution.h"

namespace partita::codegen {

/// Convolutions of one or two dimensions, transposed ones and gradients as sums of products, one for each tap of the
/// window, with the kernel of our own products. The images have their channels innermost. The steps are null where
/// neither own_products_are_faster() nor, in the forward, has_long_sums() holds, for groups, and for few channels.
Prepared prepare_taps(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                      const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out);
Prepared prepare_taps_to_input(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& grad,
                               const ConcreteView& weight, const ConcreteView& result);
/// An infinity or NaN may reach elements of the result that do not depend on it.
Prepared prepare_taps_to_weight(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& grad,
                                const ConcreteView& input, const ConcreteView& result);

}  // namespace partita::codegen
