#pragma once
#include <array>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {

/// x[indices] as in numpy: where each result element comes from, as sums of three offsets. Result dimensions are
/// before + replacement + after; indexed dimensions that are not adjacent move the replacement to the front.
struct Indexing {
  Sizes before, replacement, after;  ///< sizes of the three parts
  /// Element offsets into `self` (its storage offset not included), row-major over each part.
  std::vector<std::int64_t> before_offsets, replacement_offsets, after_offsets;

  Sizes sizes() const;
  /// f(row-major position in the result, offset in self)
  template <class F>
  void each(F f) const {
    std::int64_t position = 0;
    for (auto b : before_offsets)
      for (auto r : replacement_offsets)
        for (auto a : after_offsets) f(position++, a + b + r);
  }
};

/// Boolean masks among `indices` become the positions of their true elements; None items are null. Fails in PyTorch's
/// words for indices out of bounds.
Indexing index_of(const Tensor& self, const std::vector<const Tensor*>& indices);
/// Row-major positions of the true (non-zero) elements: [count, rank], int64.
Tensor nonzero(const Tensor& t);

/// f.operator()<T>() with an unsigned or pair type as wide as an element of `t`: for moving elements around.
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

/// An index into a dimension of `size`, negative ones counted from the end; fails when out of bounds.
std::int64_t checked_index(std::int64_t index, std::int64_t size, std::int64_t dim);

}  // namespace partita::kernels
