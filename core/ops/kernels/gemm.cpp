#include "core/ops/kernels/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace partita::kernels {

namespace {

/// A register tile: rows of one 64-byte vector of doubles each.
constexpr std::int64_t tile_rows = 8, tile_columns = 8;
/// Panels of a block of b fit into half of a level 2 cache, those of a block of a into a quarter.
constexpr std::int64_t block_m = 128, block_n = 512, block_k = 256;

/// tile[8][8] = packed panels a[k][8] times b[k][8].
[[gnu::always_inline]] inline void multiply_panels(std::int64_t k, const double* a, const double* b, double* tile) {
  typedef double Vector __attribute__((vector_size(tile_columns * sizeof(double))));
  Vector sum[tile_rows] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    Vector row;
    std::memcpy(&row, b + p * tile_columns, sizeof row);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < tile_rows; ++i) sum[i] += a[p * tile_rows + i] * row;
  }
  std::memcpy(tile, sum, sizeof sum);
}

using PanelKernel = void (*)(std::int64_t, const double*, const double*, double*);

void multiply_panels_baseline(std::int64_t k, const double* a, const double* b, double* tile) {
  multiply_panels(k, a, b, tile);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_panels_avx2(std::int64_t k, const double* a, const double* b,
                                                              double* tile) {
  multiply_panels(k, a, b, tile);
}
__attribute__((target("avx512f,fma"))) void multiply_panels_avx512(std::int64_t k, const double* a, const double* b,
                                                                   double* tile) {
  multiply_panels(k, a, b, tile);
}
#endif

PanelKernel panel_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return multiply_panels_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_panels_avx2;
#endif
  return multiply_panels_baseline;
}

/// Copies lines of `width` across and `depth` along into panels [depth][width], the last one filled up with zeros.
template <class T>
void pack(const T* from, std::int64_t across, std::int64_t depth, std::int64_t across_stride, std::int64_t depth_stride,
          std::int64_t width, double* to) {
  for (std::int64_t start = 0; start < across; start += width) {
    const std::int64_t used = std::min(width, across - start);
    const T* panel = from + start * across_stride;
    for (std::int64_t p = 0; p < depth; ++p, to += width) {
      for (std::int64_t i = 0; i < used; ++i) to[i] = static_cast<double>(panel[i * across_stride + p * depth_stride]);
      std::fill(to + used, to + width, 0.0);
    }
  }
}

template <class T>
void add_blocked(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, double* c,
                 std::int64_t c_row_stride) {
  static const PanelKernel multiply = panel_kernel();
  auto panels = [&](std::int64_t lines, std::int64_t width) {
    return std::vector<double>(static_cast<std::size_t>((lines + width - 1) / width * width * std::min(k, block_k)));
  };
  std::vector<double> packed_a = panels(std::min(m, block_m), tile_rows),
                      packed_b = panels(std::min(n, block_n), tile_columns);
  alignas(64) double tile[tile_rows * tile_columns];
  for (std::int64_t j0 = 0; j0 < n; j0 += block_n) {
    const std::int64_t nb = std::min(block_n, n - j0);
    for (std::int64_t p0 = 0; p0 < k; p0 += block_k) {
      const std::int64_t kb = std::min(block_k, k - p0);
      pack(&b.at(p0, j0), nb, kb, b.column_stride, b.row_stride, tile_columns, packed_b.data());
      for (std::int64_t i0 = 0; i0 < m; i0 += block_m) {
        const std::int64_t mb = std::min(block_m, m - i0);
        pack(&a.at(i0, p0), mb, kb, a.row_stride, a.column_stride, tile_rows, packed_a.data());
        for (std::int64_t j = 0; j < nb; j += tile_columns)
          for (std::int64_t i = 0; i < mb; i += tile_rows) {
            multiply(kb, packed_a.data() + i * kb, packed_b.data() + j * kb, tile);
            double* out = c + (i0 + i) * c_row_stride + j0 + j;
            for (std::int64_t r = 0; r < std::min(tile_rows, mb - i); ++r)
              for (std::int64_t s = 0; s < std::min(tile_columns, nb - j); ++s)
                out[r * c_row_stride + s] += tile[r * tile_columns + s];
          }
      }
    }
  }
}

template <class T>
double dot(std::int64_t count, const T* x, const T* y) {
  constexpr std::int64_t lanes = 8;
  double sum[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) sum[l] += static_cast<double>(x[i + l]) * static_cast<double>(y[i + l]);
  for (; i < count; ++i) sum[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

template <class T>
void add_plain(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, Accumulator<T>* c,
               std::int64_t c_row_stride) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p) {
      const Accumulator<T> x(a.at(i, p));
      Accumulator<T>* row = c + i * c_row_stride;
      for (std::int64_t j = 0; j < n; ++j) row[j] = multiply_add(row[j], x, Accumulator<T>(b.at(p, j)));
    }
}

}  // namespace

template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, Accumulator<T>* c,
          std::int64_t c_row_stride, bool accumulate) {
  if (!accumulate)
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_row_stride, n, Accumulator<T>(0));
  if constexpr (std::is_floating_point_v<T>) {
    if ((m > 1 && n > 1) || a.column_stride != 1 || b.row_stride != 1)
      return add_blocked(m, n, k, a, b, c, c_row_stride);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) c[i * c_row_stride + j] += dot(k, &a.at(i, 0), &b.at(0, j));
  } else {
    add_plain(m, n, k, a, b, c, c_row_stride);
  }
}

#define PARTITA_INSTANTIATE(T)                                                                                \
  template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<T>, MatrixView<T>, Accumulator<T>*, \
                     std::int64_t, bool);
PARTITA_INSTANTIATE(float)
PARTITA_INSTANTIATE(double)
PARTITA_INSTANTIATE(std::int64_t)
PARTITA_INSTANTIATE(std::complex<float>)
PARTITA_INSTANTIATE(std::complex<double>)
#undef PARTITA_INSTANTIATE

}  // namespace partita::kernels
