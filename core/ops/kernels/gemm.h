#pragma once
#include <complex>
#include <cstdint>

namespace partita::kernels {

/// A matrix in memory; strides in elements, of any order, 0 allowed.
template <class T>
struct MatrixView {
  const T* data;
  std::int64_t row_stride, column_stride;

  MatrixView transposed() const { return {data, column_stride, row_stride}; }
  const T& at(std::int64_t i, std::int64_t j) const { return data[i * row_stride + j * column_stride]; }
};

/// c[m, n] = a[m, k] b[k, n], added to c when `accumulate`. c has unit column stride and may not overlap a or b.
/// Instantiated for float, double (blocked, vectorised), int64 and the complex types (plain).
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
          std::int64_t c_row_stride, bool accumulate = false);

}  // namespace partita::kernels
