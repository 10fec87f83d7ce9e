#pragma once
#include <array>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {

/// Row-major positions of the true (non-zero) elements: [count, rank], int64.
Tensor nonzero(const Tensor& t);

/// Calls f.operator()<T>() where T, an unsigned type or a pair, is as wide as an element of `t`: for code that only
/// moves elements.
void dispatch_width(DType t, auto&& f) {
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

}  // namespace partita::kernels
