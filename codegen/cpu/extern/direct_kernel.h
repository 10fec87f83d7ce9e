#pragma once
// Convolutions computed as they are defined, where results depend on few channels each. As attention_kernel.h, this
// header brings no code of its own.
#include <cstdint>

#include "codegen/cpu/extern/register_work.h"

namespace partita::codegen {

/// Distances are in elements; the results' channels are adjacent. Zeros around an image are left out, not multiplied.
struct DirectProblem {
  std::int64_t groups = 1, in_channels = 0, out_channels = 0;  ///< channels: of a group
  std::int64_t window_height = 0, window_width = 0;
  std::int64_t height = 0, width = 0;          ///< of the input
  std::int64_t out_height = 0, out_width = 0;  ///< of the result
  std::int64_t stride_y = 1, stride_x = 1;
  std::int64_t dilation_y = 1, dilation_x = 1;
  std::int64_t top = 0, left = 0;  ///< rows and columns of zeros before the input
  std::int64_t in_channel = 1, in_row = 0, in_pixel = 0, out_row = 0, out_pixel = 0;
  /// [window, in_channels]: how far the values that a pixel of the result depends on lie behind the first.
  const std::int64_t* offsets = nullptr;
  const float* packed = nullptr;  ///< the weights, in the kernel's order
  const float* bias = nullptr;
};

struct DirectKernel {
  const char* name;
  /// Is it made for this problem, and faster than oneDNN?
  bool (*takes)(const DirectProblem& problem);
  std::int64_t (*packed_elements)(const DirectProblem& problem);
  /// Packs weights of [groups * out_channels, in_channels, height, width] with these strides; `to` holds zeros.
  void (*pack)(const DirectProblem& problem, const float* weight, const std::int64_t* strides, float* to);
  /// Computes rows [first, first + rows) of one image.
  void (*run)(const DirectProblem& problem, const float* input, std::int64_t first, std::int64_t rows, float* out,
              const RegisterWork& work);
};

/// Gradients of depthwise convolutions: `groups` channels, adjacent in both images, weights packed as [window, groups].
struct DepthwiseGradients {
  const char* name;
  /// Computes rows [first, first + rows) of the gradient of one image of the input.
  void (*to_input)(const DirectProblem& problem, const float* grad, std::int64_t first, std::int64_t rows, float* out);
  /// Adds to sums[window, groups] what rows [first, first + rows) of one image's gradient contribute.
  void (*to_weight)(const DirectProblem& problem, const float* input, const float* grad, std::int64_t first,
                    std::int64_t rows, float* sums);
};

#ifdef __x86_64__
extern const DepthwiseGradients depthwise_gradients_avx2;    ///< AVX2 and FMA
extern const DepthwiseGradients depthwise_gradients_avx512;  ///< AVX-512 F, BW, DQ and VL
// Depthwise convolutions of 3x3; grouped ones of few channels, and those of colours.
extern const DirectKernel depthwise_avx2, few_channels_avx2;      ///< AVX2 and FMA
extern const DirectKernel depthwise_avx512, few_channels_avx512;  ///< AVX-512 F, BW, DQ and VL
#endif

}  // namespace partita::codegen
