#pragma once
// How tensors lie in memory, as cuDNN is told it.
#include <string>
#include <vector>

#include "codegen/cuda/matrix/convolution_window.h"
#include "codegen/program/extern.h"
#include "core/base/result.h"

namespace partita::codegen {

/// Why cuDNN does not take a call.
Diagnostic refusal(std::string why);

/// Strides of a tensor without gaps whose channels, dimension 1, come first or last.
Sizes packed_strides(const Sizes& sizes, bool channels_last);
/// Does it lie so? A dimension of one element has any stride.
bool packed(const ConcreteView& v, bool channels_last);
/// Are all elements at places of their own, dimensions within dimensions?
bool nested(const ConcreteView& v);

/// Windows of images of one dimension as those of images of height 1. Other ones stay.
ConvolutionWindow with_height(ConvolutionWindow w);

/// cuDNN counts in 32 bits: refusal() of numbers that have more, or are negative.
Result<std::vector<int>> narrow(const Sizes& numbers);

}  // namespace partita::codegen
