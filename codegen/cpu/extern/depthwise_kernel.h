#pragma once
// Depthwise convolutions of 3x3. As attention_kernel.h, this header brings no code of its own.
#include <cstdint>

#include "codegen/cpu/extern/register_work.h"

namespace partita::codegen {

/// Images whose channels are adjacent. Distances are in elements. Zeros around an image are left out, not multiplied.
struct DepthwiseProblem {
  std::int64_t channels = 0;
  std::int64_t height = 0, width = 0;          ///< of the input
  std::int64_t out_height = 0, out_width = 0;  ///< of the result
  std::int64_t stride_y = 1, stride_x = 1;     ///< stride_x: 1 or 2
  std::int64_t top = 0, left = 0;              ///< rows and columns of zeros before the input
  std::int64_t in_row = 0, in_pixel = 0, out_row = 0, out_pixel = 0;
  const float* weights = nullptr;  ///< [3, 3, channels]
  const float* bias = nullptr;
};

struct DepthwiseKernel {
  const char* name;
  /// Computes rows [first, first + rows) of one image.
  void (*run)(const DepthwiseProblem& problem, const float* input, std::int64_t first, std::int64_t rows, float* out,
              const RegisterWork& work);
};

#ifdef __x86_64__
extern const DepthwiseKernel depthwise_avx512;  ///< AVX-512 F, BW, DQ and VL
#endif

}  // namespace partita::codegen
