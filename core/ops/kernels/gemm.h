#pragma once
#include "core/ops/kernels/accumulate_type.h"

namespace partita::kernels {

/// A matrix in memory; strides in elements, of any order, 0 allowed.
template <class T>
struct MatrixView {
  const T* data;
  std::int64_t row_stride, column_stride;

  const T& at(std::int64_t i, std::int64_t j) const { return data[i * row_stride + j * column_stride]; }
};

/// sum + x y; integers wrap, as in PyTorch.
template <class T>
T multiply_add(T sum, T x, T y) {
  if constexpr (std::is_same_v<T, std::int64_t>)
    return static_cast<T>(static_cast<std::uint64_t>(sum) +
                          static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  else
    return sum + x * y;
}

/// c[m, n] = a[m, k] b[k, n], added to c when `accumulate`; c has unit column stride. Instantiated for float, double
/// (blocked, vectorised), int64 and the complex types (plain).
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, AccumulateType<T>* c,
          std::int64_t c_row_stride, bool accumulate = false);

}  // namespace partita::kernels
