#pragma once
// Statistics and gradients of x normalised over a group of elements, and their sums per channel. T is the computation
// dtype; sums run in double.
#include <cmath>
#include <cstdint>

namespace partita::kernels {

struct Moments {
  double mean = 0, variance = 0;  ///< biased variance
};

/// Of `count` elements `stride` apart, in `blocks` runs `block_stride` apart.
template <class T>
Moments moments(const T* x, std::int64_t blocks, std::int64_t block_stride, std::int64_t count) {
  double n = static_cast<double>(blocks * count), sum = 0, squares = 0;
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[b * block_stride + i]);
  double mean = sum / n;
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t i = 0; i < count; ++i) {
      double d = static_cast<double>(x[b * block_stride + i]) - mean;
      squares += d * d;
    }
  return {mean, squares / n};
}

}  // namespace partita::kernels
