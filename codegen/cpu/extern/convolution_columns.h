#pragma once
#include "codegen/cpu/extern/convolution.h"

namespace partita::codegen {

/// A convolution of small images with large weights that change from run to run: its pixels' windows, copied side by
/// side ("im2col"), are a matrix, and the weights stay as they lie, where oneDNN would bring them into another order in
/// each run. Zeros around an image are multiplied, too, so infinite weights and gradients give NaN there: use
/// where_finite(). The step is null where that does not pay, or where channels are not adjacent.
Prepared prepare_columns(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                         const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out);
/// Its gradient by the input.
Prepared prepare_columns_to_input(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& grad,
                                  const ConcreteView& weight, const ConcreteView& result);
/// Its gradient by the weight.
Prepared prepare_columns_to_weight(const ExternContext& context, const ConvolutionArguments& g,
                                   const ConcreteView& grad, const ConcreteView& input, const ConcreteView& result);

}  // namespace partita::codegen
