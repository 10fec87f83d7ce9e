#pragma once
#include "core/loops/scalar_device.h"

namespace partita::kernels {

// Sums, differences and products of elements. Those of integers wrap, as in PyTorch; numbers that give sizes are
// computed as SymExpr instead, which refuses what has more than 64 bits.
template <class T>
T wrapping_sum(T a, T b) {
  return static_cast<T>(loops::device::wrapped(a) + loops::device::wrapped(b));
}
template <class T>
T wrapping_difference(T a, T b) {
  return static_cast<T>(loops::device::wrapped(a) - loops::device::wrapped(b));
}
template <class T>
T wrapping_product(T a, T b) {
  return static_cast<T>(loops::device::wrapped(a) * loops::device::wrapped(b));
}

}  // namespace partita::kernels
