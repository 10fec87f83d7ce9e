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
/// RowwiseMoments: equal elements have a variance of 0, whatever their sum rounds to. Of infinities it is the sum's, as
/// in batch norm; of rows PyTorch's is that or NaN, by where they stand.
template <class T>
Moments moments(const T* x, std::int64_t blocks, std::int64_t block_stride, std::int64_t count) {
  double n = 0, mean = 0, squares = 0, sum = 0;
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t i = 0; i < count; ++i) {
      const double v = static_cast<double>(x[b * block_stride + i]), before = v - mean;
      mean += before / ++n;
      squares += before * (v - mean);
      sum += v;
    }
  return {std::isfinite(mean) ? mean : sum / n, squares / n};
}

}  // namespace partita::kernels
