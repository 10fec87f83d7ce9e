#include "core/ops/kernels/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

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

/// tile[8][columns] = packed panels a[k][8] times b[k][columns].
template <class T>
[[gnu::always_inline]] inline void multiply_panels(std::int64_t k, const T* a, const T* b, T* tile) {
  using V = typename Vector<T>::type;
  V sum[tile_rows] = {};
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

/// Copies lines of `width` across and `depth` along into panels [depth][width], the last one filled up with zeros.
template <class T>
void pack(const T* from, std::int64_t across, std::int64_t depth, std::int64_t across_stride, std::int64_t depth_stride,
          std::int64_t width, T* to) {
  for (std::int64_t start = 0; start < across; start += width) {
    std::int64_t used = std::min(width, across - start);
    const T* panel = from + start * across_stride;
    for (std::int64_t p = 0; p < depth; ++p, to += width) {
      for (std::int64_t i = 0; i < used; ++i) to[i] = panel[i * across_stride + p * depth_stride];
      std::fill(to + used, to + width, T(0));
    }
  }
}

/// MKL, by which PyTorch multiplies, keeps sums of this many products at most in fused registers, and of two halves
/// where two of them suffice; of a single column all.
std::int64_t block_of(std::int64_t n, std::int64_t k) {
  constexpr std::int64_t most = 192;
  return n == 1 || k <= most ? k : k <= 2 * most ? k / 2 : most;
}

template <class T>
void gemm_blocked(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
                  std::int64_t c_row_stride, bool accumulate) {
  static const PanelKernel<T> multiply = panel_kernel<T>();
  constexpr std::int64_t columns = tile_columns<T>;
  const std::int64_t block_k = block_of(n, k);
  auto rounded = [](std::int64_t v, std::int64_t to) { return (v + to - 1) / to * to; };
  std::vector<T> packed_a(static_cast<std::size_t>(rounded(std::min(m, block_m), tile_rows) * block_k));
  std::vector<T> packed_b(static_cast<std::size_t>(rounded(std::min(n, block_n), columns) * block_k));
  alignas(64) T tile[tile_rows * columns];
  for (std::int64_t j0 = 0; j0 < n; j0 += block_n) {
    std::int64_t nb = std::min(block_n, n - j0);
    for (std::int64_t p0 = 0; p0 < k; p0 += block_k) {
      std::int64_t kb = std::min(block_k, k - p0);
      bool add = accumulate || p0 > 0;
      pack(&b.at(p0, j0), nb, kb, b.column_stride, b.row_stride, columns, packed_b.data());
      for (std::int64_t i0 = 0; i0 < m; i0 += block_m) {
        std::int64_t mb = std::min(block_m, m - i0);
        pack(&a.at(i0, p0), mb, kb, a.row_stride, a.column_stride, tile_rows, packed_a.data());
        for (std::int64_t j = 0; j < nb; j += columns) {
          std::int64_t width = std::min(columns, nb - j);
          for (std::int64_t i = 0; i < mb; i += tile_rows) {
            multiply(kb, packed_a.data() + i * kb, packed_b.data() + j * kb, tile);
            std::int64_t height = std::min(tile_rows, mb - i);
            for (std::int64_t r = 0; r < height; ++r) {
              T* out = c + (i0 + i + r) * c_row_stride + j0 + j;
              const T* in = tile + r * columns;
              if (add) {
                for (std::int64_t s = 0; s < width; ++s) out[s] += in[s];
              } else {
                std::copy(in, in + width, out);
              }
            }
          }
        }
      }
    }
  }
}

/// Narrower results MKL sums otherwise: it rounds each product and adds it to what is there, one after the other.
/// Single columns it takes apart; those are summed so up to the limit.
constexpr std::int64_t narrow = 12;
constexpr std::int64_t column_limit = 1024;

bool sums_in_order(std::int64_t m, std::int64_t n, std::int64_t k) {
  return n < narrow && (n > 1 || (m <= column_limit && k <= column_limit / m));
}

/// Integers wrap, as in PyTorch.
template <class T>
T multiply_add(T sum, T x, T y) {
  if constexpr (std::is_same_v<T, std::int64_t>)
    return static_cast<T>(static_cast<std::uint64_t>(sum) +
                          static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  else
    return sum + x * y;
}

}  // namespace

template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
          std::int64_t c_row_stride, bool accumulate) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    if (!accumulate)
      for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_row_stride, n, T(0));
    return;
  }
  if constexpr (std::is_floating_point_v<T>)
    if (!sums_in_order(m, n, k)) return gemm_blocked(m, n, k, a, b, c, c_row_stride, accumulate);
  for (std::int64_t i = 0; i < m; ++i) {
    T* out = c + i * c_row_stride;
    if (!accumulate) std::fill_n(out, n, T(0));
    for (std::int64_t p = 0; p < k; ++p) {
      T x = a.at(i, p);
      for (std::int64_t j = 0; j < n; ++j) out[j] = multiply_add(out[j], x, b.at(p, j));
    }
  }
}

template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<float>, float*, std::int64_t,
                   bool);
template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<double>, MatrixView<double>, double*,
                   std::int64_t, bool);
template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<std::int64_t>, MatrixView<std::int64_t>,
                   std::int64_t*, std::int64_t, bool);
template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<std::complex<float>>,
                   MatrixView<std::complex<float>>, std::complex<float>*, std::int64_t, bool);
template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<std::complex<double>>,
                   MatrixView<std::complex<double>>, std::complex<double>*, std::int64_t, bool);

}  // namespace partita::kernels
