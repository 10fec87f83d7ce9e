#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

namespace partita::kernels {

/// A matrix in memory; strides in elements, of any order, 0 allowed.
template <class T>
struct MatrixView {
  const T* data;
  std::int64_t row_stride, column_stride;

  MatrixView transposed() const { return {data, column_stride, row_stride}; }
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

/// c[m, n] = alpha a[m, k] b[k, n], added to c when `accumulate`. c has unit column stride and may not overlap a or b.
/// Instantiated for float, double (blocked, vectorised), int64 and the complex types (plain).
///
/// Single precision is added up in the order of MKL's ?gemm, by which PyTorch's mm, mv and convolutions multiply: it
/// depends on the sizes, on the layouts and, for small products, on where rows lie within 16 bytes. So sums that cancel
/// leave the same rest as PyTorch's (as seen on x86 with MKL 2024; other processors may take other kernels).
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
          std::int64_t c_row_stride, bool accumulate = false, T alpha = T(1));

/// The same for one entry of a batch, as PyTorch's bmm multiplies: small ones in its own loops (baddbmm_cpu_kernel).
template <class T>
void batch_gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
                std::int64_t c_row_stride, bool accumulate = false, T alpha = T(1));

/// Each product is added to c[m, n] by a fused multiply-add, in the order of k.
void gemm_chained(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                  std::int64_t c_row_stride);

/// y[m] = alpha a[m, k] x[k], added to y when `accumulate`: real ones as gemm, complex ones in PyTorch's own loops
/// (gemv in native/BlasKernel.cpp).
template <class T>
void gemv(std::int64_t m, std::int64_t k, MatrixView<T> a, const T* x, std::int64_t x_stride, T* y,
          bool accumulate = false, T alpha = T(1));

/// The sum of x[i] y[i], i < count, strides in elements; in single precision in the order of MKL's sdot.
template <class T>
T dot(std::int64_t count, const T* x, std::int64_t x_stride, const T* y, std::int64_t y_stride);

}  // namespace partita::kernels
