#pragma once
#include <array>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {

/// x[indices] by NumPy's rules: the element that each result element comes from, as a sum of three offsets. The
/// result's dimensions are before + replacement + after. When the indexed dimensions are not adjacent, the replacement
/// comes first.
struct Indexing {
  Sizes before, replacement, after;  ///< sizes of the three parts
  /// Element offsets into `self` (its storage offset not included), row-major over each part.
  std::vector<std::int64_t> before_offsets, replacement_offsets, after_offsets;

  Sizes sizes() const;
  /// Calls f(row-major position in the result, offset in self) for every element of the result.
  template <class F>
  void each(F f) const {
    std::int64_t position = 0;
    for (auto b : before_offsets)
      for (auto r : replacement_offsets)
        for (auto a : after_offsets) {
          if (position % 4096 == 0) StopsLoops::check();
          f(position++, a + b + r);
        }
  }
};

/// Masks among `indices` are replaced by the positions of their true elements; null means None. Fails with PyTorch's
/// message when an index is out of bounds.
Indexing index_of(const Tensor& self, const std::vector<const Tensor*>& indices);
/// Row-major positions of the true (non-zero) elements: [count, rank], int64.
Tensor nonzero(const Tensor& t);

/// Calls f.operator()<T>() where T, an unsigned type or a pair, is as wide as an element of `t`: for code that only
/// moves elements.
template <class F>
void dispatch_width(DType t, F&& f) {
  switch (itemsize(t)) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    case 8:
      return f.template operator()<std::uint64_t>();
    default:
      return f.template operator()<std::array<std::uint64_t, 2>>();
  }
}

/// An index into a dimension of `size`. A negative one counts from the end; fails when it is out of bounds.
std::int64_t checked_index(std::int64_t index, std::int64_t size, std::int64_t dim);

}  // namespace partita::kernels
