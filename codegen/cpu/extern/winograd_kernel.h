#pragma once
// Convolutions of 3x3 by Winograd's algorithm F(2x2, 3x3) (Lavin and Gray, Fast Algorithms for Convolutional Neural
// Networks, 2015): tiles of 4x4 pixels of the input give 2x2 results by 16 products in place of 36. Each result is
// computed of the pixels that it depends on, no others. As attention_kernel.h, this header brings no code of its own.
#include <cstdint>

#include "codegen/cpu/extern/register_work.h"

namespace partita::codegen {

struct ProductKernel;

/// Images whose channels are adjacent, and whose numbers of channels are multiples of 16. Distances are in elements.
struct WinogradProblem {
  std::int64_t channels = 0, results = 0;      ///< of the input, of the result; at most 1024 of the input
  std::int64_t height = 0, width = 0;          ///< of the input
  std::int64_t out_height = 0, out_width = 0;  ///< of the result
  std::int64_t top = 0, left = 0;              ///< rows and columns of zeros before the input
  std::int64_t in_row = 0, in_pixel = 0, out_row = 0, out_pixel = 0;
  const float* bias = nullptr;  ///< null: zeros
};

/// Weights [results, channels, 3, 3]; distances may be negative.
struct WinogradWeights {
  const float* data = nullptr;
  std::int64_t result = 0, channel = 0, row = 0, column = 0;
};

struct WinogradKernel {
  const char* name;
  const ProductKernel* product;
  std::int64_t (*packed_elements)(const WinogradProblem& problem);
  /// Transforms and packs the weights of channels [first, last).
  void (*pack)(const WinogradProblem& problem, const WinogradWeights& weights, std::int64_t first, std::int64_t last,
               float* packed);
  std::int64_t (*scratch_elements)(const WinogradProblem& problem, std::int64_t rows);  ///< of run(), for `rows`
  /// Computes rows [first, first + rows) of one image; `first` is even. Returns whether all are finite before the
  /// work on them: where a product is infinite, sums of products may be NaN that are infinite otherwise.
  bool (*run)(const WinogradProblem& problem, const float* input, const float* packed, std::int64_t first,
              std::int64_t rows, float* out, const RegisterWork& work, float* scratch);
};

#ifdef __x86_64__
extern const WinogradKernel winograd_avx2;    ///< AVX2 and FMA
extern const WinogradKernel winograd_avx512;  ///< AVX-512 F, BW, DQ and VL
#endif

}  // namespace partita::codegen
