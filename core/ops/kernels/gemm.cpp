#include "core/ops/kernels/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/ops/kernels/gemm_narrow.h"

namespace partita::kernels {

namespace {

/// Rows of a register tile; its width is one 64-byte vector.
constexpr std::int64_t tile_rows = 8;
constexpr std::int64_t block_m = 128;
constexpr std::int64_t block_n = 1024;

template <class T>
struct Vector;
template <>
struct Vector<float> {
  typedef float type __attribute__((vector_size(64)));
};
template <>
struct Vector<double> {
  typedef double type __attribute__((vector_size(64)));
};
template <class T>
constexpr std::int64_t tile_columns = 64 / sizeof(T);

/// tile[8][columns] += packed panels a[k][8] times b[k][columns], product by product.
template <class T>
[[gnu::always_inline]] inline void multiply_panels(std::int64_t k, const T* a, const T* b, T* tile) {
  using V = typename Vector<T>::type;
  V sum[tile_rows];
  std::memcpy(sum, tile, sizeof sum);
  for (std::int64_t p = 0; p < k; ++p) {
    V row;
    std::memcpy(&row, b + p * tile_columns<T>, sizeof row);
    for (std::int64_t i = 0; i < tile_rows; ++i) sum[i] += a[p * tile_rows + i] * row;
  }
  std::memcpy(tile, sum, sizeof sum);
}

template <class T>
using PanelKernel = void (*)(std::int64_t, const T*, const T*, T*);

template <class T>
void multiply_panels_baseline(std::int64_t k, const T* a, const T* b, T* tile) {
  multiply_panels(k, a, b, tile);
}
#if defined(__x86_64__)
template <class T>
__attribute__((target("avx2,fma"))) void multiply_panels_avx2(std::int64_t k, const T* a, const T* b, T* tile) {
  multiply_panels(k, a, b, tile);
}
template <class T>
__attribute__((target("avx512f,fma"))) void multiply_panels_avx512(std::int64_t k, const T* a, const T* b, T* tile) {
  multiply_panels(k, a, b, tile);
}
#endif

template <class T>
PanelKernel<T> panel_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return multiply_panels_avx512<T>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_panels_avx2<T>;
#endif
  return multiply_panels_baseline<T>;
}

/// Copies lines of `width` across and `depth` along, times `scale`, into panels [depth][width], the last one filled up
/// with zeros.
template <class T>
void pack(const T* from, std::int64_t across, std::int64_t depth, std::int64_t across_stride, std::int64_t depth_stride,
          std::int64_t width, T scale, T* to) {
  for (std::int64_t start = 0; start < across; start += width) {
    std::int64_t used = std::min(width, across - start);
    const T* panel = from + start * across_stride;
    for (std::int64_t p = 0; p < depth; ++p, to += width) {
      for (std::int64_t i = 0; i < used; ++i) to[i] = scale * panel[i * across_stride + p * depth_stride];
      std::fill(to + used, to + width, T(0));
    }
  }
}

/// MKL keeps sums of this many products at most in fused registers, and of two halves where two of them suffice.
std::int64_t block_of(std::int64_t k) {
  constexpr std::int64_t most = 192;
  return k <= most ? k : k <= 2 * most ? k / 2 : most;
}

/// Sums of blocks are added up; or each continues the one before it, `chained`.
template <class T>
void gemm_blocked(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
                  std::int64_t c_row_stride, bool accumulate, T alpha, bool chained = false) {
  static const PanelKernel<T> multiply = panel_kernel<T>();
  constexpr std::int64_t columns = tile_columns<T>;
  const std::int64_t block_k = block_of(k);
  auto rounded = [](std::int64_t v, std::int64_t to) { return (v + to - 1) / to * to; };
  std::vector<T> packed_a(static_cast<std::size_t>(rounded(std::min(m, block_m), tile_rows) * block_k));
  std::vector<T> packed_b(static_cast<std::size_t>(rounded(std::min(n, block_n), columns) * block_k));
  alignas(64) T tile[tile_rows * columns];
  for (std::int64_t j0 = 0; j0 < n; j0 += block_n) {
    std::int64_t nb = std::min(block_n, n - j0);
    for (std::int64_t p0 = 0; p0 < k; p0 += block_k) {
      std::int64_t kb = std::min(block_k, k - p0);
      bool add = accumulate || p0 > 0;
      pack(&b.at(p0, j0), nb, kb, b.column_stride, b.row_stride, columns, alpha, packed_b.data());
      for (std::int64_t i0 = 0; i0 < m; i0 += block_m) {
        std::int64_t mb = std::min(block_m, m - i0);
        pack(&a.at(i0, p0), mb, kb, a.row_stride, a.column_stride, tile_rows, T(1), packed_a.data());
        for (std::int64_t j = 0; j < nb; j += columns) {
          std::int64_t width = std::min(columns, nb - j);
          for (std::int64_t i = 0; i < mb; i += tile_rows) {
            const std::int64_t height = std::min(tile_rows, mb - i);
            T* out = c + (i0 + i) * c_row_stride + j0 + j;
            std::fill(std::begin(tile), std::end(tile), T(0));
            if (add && chained)
              for (std::int64_t r = 0; r < height; ++r) std::copy_n(out + r * c_row_stride, width, tile + r * columns);
            multiply(kb, packed_a.data() + i * kb, packed_b.data() + j * kb, tile);
            for (std::int64_t r = 0; r < height; ++r) {
              T* row = out + r * c_row_stride;
              const T* in = tile + r * columns;
              if (add && !chained) {
                for (std::int64_t s = 0; s < width; ++s) row[s] += in[s];
              } else {
                std::copy_n(in, width, row);
              }
            }
          }
        }
      }
    }
  }
}

/// Real and imaginary parts are multiplied apart, block by block: (Re a)(Re b) - (Im a)(Im b) of each block is added.
void gemm_blocked(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<std::complex<float>> a,
                  MatrixView<std::complex<float>> b, std::complex<float>* c, std::int64_t c_row_stride, bool accumulate,
                  std::complex<float> alpha) {
  struct Parts {
    std::vector<float> real, imag;
    explicit Parts(std::int64_t count) : real(static_cast<std::size_t>(count)), imag(static_cast<std::size_t>(count)) {}
    void set(std::int64_t i, std::complex<float> v) {
      real[static_cast<std::size_t>(i)] = v.real();
      imag[static_cast<std::size_t>(i)] = v.imag();
    }
  };
  Parts left(m * k), right(k * n), direct(m * n), crossed(m * n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p) left.set(i * k + p, a.at(i, p));
  for (std::int64_t p = 0; p < k; ++p)
    for (std::int64_t j = 0; j < n; ++j) right.set(p * n + j, alpha == 1.0f ? b.at(p, j) : alpha * b.at(p, j));
  const std::int64_t block_k = block_of(k);
  for (std::int64_t p0 = 0; p0 < k; p0 += block_k) {
    auto product = [&](const std::vector<float>& x, const std::vector<float>& y, std::vector<float>& to) {
      gemm_blocked<float>(m, n, std::min(block_k, k - p0), {x.data() + p0, k, 1}, {y.data() + p0 * n, n, 1}, to.data(),
                          n, false, 1.0f);
    };
    product(left.real, right.real, direct.real);
    product(left.imag, right.imag, direct.imag);
    product(left.real, right.imag, crossed.real);
    product(left.imag, right.real, crossed.imag);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>(i * n + j);
        const std::complex<float> sum(direct.real[at] - direct.imag[at], crossed.real[at] + crossed.imag[at]);
        std::complex<float>& to = c[i * c_row_stride + j];
        to = accumulate || p0 > 0 ? to + sum : sum;
      }
  }
}

/// In double precision small products are added up one by one, which the panels are too wide for.
bool gemm_narrow(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<double> a, MatrixView<double> b, double* c,
                 std::int64_t c_row_stride, bool accumulate, double alpha) {
  constexpr std::int64_t narrow = 12, column_limit = 1024;
  if (n >= narrow || (n == 1 && (m > column_limit || k > column_limit / m))) return false;
  gemm_in_order(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  return true;
}

}  // namespace

template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
          std::int64_t c_row_stride, bool accumulate, T alpha) {
  if (m == 0 || n == 0) return;
  if (k == 0 || alpha == T(0)) {  // of which BLAS reads neither factor
    if (!accumulate)
      for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_row_stride, n, T(0));
  } else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::complex<double>>) {
    gemm_in_order(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  } else if (!gemm_narrow(m, n, k, a, b, c, c_row_stride, accumulate, alpha)) {
    gemm_blocked(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  }
}

template <class T>
void batch_gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
                std::int64_t c_row_stride, bool accumulate, T alpha) {
  constexpr std::int64_t own_loops = 400;  // products below which bmm does not call BLAS
  const bool small = m < own_loops && n < own_loops && k < own_loops && m * n * k < own_loops;
  if constexpr (std::is_same_v<T, float>)
    if (!small && n == 1) return gemm_as_matrices(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  if (small || n == 1)
    gemm_in_order(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  else
    gemm(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
}

void gemm_chained(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                  std::int64_t c_row_stride) {
  gemm_blocked(m, n, k, a, b, c, c_row_stride, true, 1.0f, true);
}

template <class T>
void gemv(std::int64_t m, std::int64_t k, MatrixView<T> a, const T* x, std::int64_t x_stride, T* y, bool accumulate,
          T alpha) {
  const MatrixView<T> column{x, x_stride, 1};
  if constexpr (std::is_floating_point_v<T>)
    gemm(m, 1, k, a, column, y, 1, accumulate, alpha);
  else
    gemm_in_order(m, 1, k, a, column, y, 1, accumulate, alpha);
}

#define PARTITA_INSTANTIATE(T)                                                                                       \
  template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<T>, MatrixView<T>, T*, std::int64_t, bool, \
                     T);                                                                                             \
  template void batch_gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<T>, MatrixView<T>, T*, std::int64_t, \
                           bool, T);                                                                                 \
  template void gemv(std::int64_t, std::int64_t, MatrixView<T>, const T*, std::int64_t, T*, bool, T);
PARTITA_INSTANTIATE(float)
PARTITA_INSTANTIATE(double)
PARTITA_INSTANTIATE(std::int64_t)
PARTITA_INSTANTIATE(std::complex<float>)
PARTITA_INSTANTIATE(std::complex<double>)
#undef PARTITA_INSTANTIATE

}  // namespace partita::kernels
