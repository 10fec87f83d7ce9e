#pragma once
// Statistics and gradients of x normalised over groups of elements, and their sums per channel. T is the computation
// dtype; sums are computed in double.
#include <cmath>
#include <cstdint>

#include "core/base/progress.h"

namespace partita::kernels {

struct Moments {
  double mean = 0, variance = 0;  ///< biased variance
};

/// The moments of `blocks` runs of `count` elements, which are `block_stride` apart. The mean is updated with every
/// element, as in PyTorch's RowwiseMoments, so that equal elements have variance 0, however their sum is rounded. If
/// elements are infinite the mean is that of their sum, as in PyTorch's batch norm; its layer norm gives that or NaN,
/// depending on where they are.
template <class T>
Moments moments(const T* x, std::int64_t blocks, std::int64_t block_stride, std::int64_t count) {
  double n = 0, mean = 0, squares = 0, sum = 0;
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t i : steps(count)) {
      const double v = static_cast<double>(x[b * block_stride + i]), before = v - mean;
      mean += before / ++n;
      squares += before * (v - mean);
      sum += v;
    }
  return {std::isfinite(mean) ? mean : sum / n, squares / n};
}

}  // namespace partita::kernels
