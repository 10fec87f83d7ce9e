#pragma once
#include <cstdint>
#include <optional>

#include "codegen/program/extern.h"

namespace partita::codegen {

/// How a convolution's window moves, a number for each dimension of the image.
struct ConvolutionWindow {
  Sizes stride, padding, dilation;
  bool transposed = false;
  std::int64_t groups = 1;
};
/// Reads stride, padding, dilation, transposed, output_padding and groups, which follow one another from argument
/// `first`. nullopt: a number is symbolic.
std::optional<ConvolutionWindow> convolution_window(const ExternContext& context, std::size_t first,
                                                    std::size_t dimensions);
/// The argument of convolution_backward that says which gradients are wanted.
inline constexpr std::size_t gradient_mask = 10;
/// Does a convolution_backward make this gradient: 0 of the input, 1 of the weight, 2 of the bias?
bool wants_gradient(const ExternContext& context, std::size_t which);

}  // namespace partita::codegen
