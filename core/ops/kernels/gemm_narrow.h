#pragma once
// Products too narrow for panels, in the summation order of MKL's kernels for them, found by probing: two terms of a
// sum are made large and opposite, and what survives tells which terms were added before they met (the method of
// "FPRev: Revealing the Order of Floating-Point Summation", Xie et al. 2024).
#include "core/ops/kernels/gemm.h"

namespace partita::kernels {

/// Each product is rounded and added to the sum of those before it; the sum, times alpha, is then added to c or stored.
template <class T>
void gemm_in_order(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
                   std::int64_t c_row_stride, bool accumulate, T alpha);

/// c = alpha a b where c has few columns or few rows; a single one is a matrix too, as in batches, and no vector.
void gemm_as_matrices(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<float> a, MatrixView<float> b,
                      float* c, std::int64_t c_row_stride, bool accumulate, float alpha);

/// Products with vectors, and others where panels do not pay; false where they do.
bool gemm_narrow(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                 std::int64_t c_row_stride, bool accumulate, float alpha);
bool gemm_narrow(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<std::complex<float>> a,
                 MatrixView<std::complex<float>> b, std::complex<float>* c, std::int64_t c_row_stride, bool accumulate,
                 std::complex<float> alpha);

}  // namespace partita::kernels
