#pragma once
// Statistics and gradients of x normalised over a group of elements, and their sums per channel. T is the computation
// dtype; sums run in double.
#include <cmath>
#include <cstdint>

namespace partita::kernels {

struct Moments {
  double mean = 0, variance = 0;  ///< biased variance
};

/// Of `count` elements in each of `blocks` runs, `block_stride` apart. The mean is kept running, as in PyTorch's
/// RowwiseMoments: equal elements have a variance of 0, whatever their sum rounds to.
template <class T>
Moments moments(const T* x, std::int64_t blocks, std::int64_t block_stride, std::int64_t count) {
  double n = 0, mean = 0, squares = 0;
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t i = 0; i < count; ++i) {
      const double v = static_cast<double>(x[b * block_stride + i]), before = v - mean;
      mean += before / ++n;
      squares += before * (v - mean);
    }
  return {mean, squares / n};
}

}  // namespace partita::kernels
