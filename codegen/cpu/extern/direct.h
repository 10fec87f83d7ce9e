#pragma once
#include "codegen/cpu/extern/convolution.h"

namespace partita::codegen {

struct DirectProblem;
/// Of a convolution of `input` to `out`; without the operands' addresses.
DirectProblem problem_of(const ConvolutionArguments& g, const ConcreteView& input, const ConcreteView& weight,
                         const ConcreteView& out);

/// A convolution of images whose results depend on few channels each, by a kernel of our own. The step is null where
/// the processor has none for it, or where oneDNN is faster.
Prepared prepare_direct(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                        const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out);

/// Gradients of a depthwise convolution whose images have their channels innermost, by kernels of our own; the steps
/// are null where there is none.
Prepared prepare_depthwise_to_input(const ExternContext& context, const ConvolutionArguments& g,
                                    const ConcreteView& grad, const ConcreteView& weight, const ConcreteView& result);
Prepared prepare_depthwise_to_weight(const ExternContext& context, const ConvolutionArguments& g,
                                     const ConcreteView& grad, const ConcreteView& input, const ConcreteView& result);

}  // namespace partita::codegen
