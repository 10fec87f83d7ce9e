// Matrix products. Floats are packed into panels, blocked for the caches and summed in double by 8x8 tiles for AVX-512,
// AVX2 or neither; vectors have kernels of their own. Other types take plain loops.
#include "core/ops/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/base/progress.h"

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

/// sum of x[i] y[i], in as many parts as registers hold, so that additions need not wait for each other. GCC converts
/// vectors better in plain loops than by __builtin_convertvector.
[[gnu::always_inline]] inline double dot_product(std::int64_t n, const double* x, const auto* y) {
  constexpr std::int64_t lanes = 32;
  double sum[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
#pragma GCC unroll 32
    for (std::int64_t l = 0; l < lanes; ++l) sum[l] += x[i + l] * static_cast<double>(y[i + l]);
  for (std::int64_t l = 0; l < lanes && i + l < n; ++l) sum[l] += x[i + l] * static_cast<double>(y[i + l]);
  for (std::int64_t half = lanes / 2; half > 0; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) sum[l] += sum[l + half];
  return sum[0];
}

/// y[j] += sum of x[p] rows[p * stride + j] over p < 4
template <class T>
[[gnu::always_inline]] inline void add_four_rows(std::int64_t n, const double* x, const T* rows, std::int64_t stride,
                                                 double* y) {
  typedef double Vector __attribute__((vector_size(64)));
  typedef T Narrow __attribute__((vector_size(8 * sizeof(T))));
  constexpr std::int64_t lanes = 8;
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    Vector sum;
    std::memcpy(&sum, y + j, sizeof sum);
#pragma GCC unroll 4
    for (std::int64_t p = 0; p < 4; ++p) {
      Narrow row;
      std::memcpy(&row, rows + p * stride + j, sizeof row);
      sum += x[p] * __builtin_convertvector(row, Vector);
    }
    std::memcpy(y + j, &sum, sizeof sum);
  }
  for (; j < n; ++j)
    for (std::int64_t p = 0; p < 4; ++p) y[j] += x[p] * static_cast<double>(rows[p * stride + j]);
}

/// The kernels for one instruction set.
struct Kernels {
  void (*multiply_panels)(std::int64_t, const double*, const double*, double*);
  double (*dot_float)(std::int64_t, const double*, const float*);
  double (*dot_double)(std::int64_t, const double*, const double*);
  void (*rows_float)(std::int64_t, const double*, const float*, std::int64_t, double*);
  void (*rows_double)(std::int64_t, const double*, const double*, std::int64_t, double*);

  double dot(std::int64_t n, const double* x, const float* y) const { return dot_float(n, x, y); }
  double dot(std::int64_t n, const double* x, const double* y) const { return dot_double(n, x, y); }
  void add_rows(std::int64_t n, const double* x, const float* rows, std::int64_t stride, double* y) const {
    rows_float(n, x, rows, stride, y);
  }
  void add_rows(std::int64_t n, const double* x, const double* rows, std::int64_t stride, double* y) const {
    rows_double(n, x, rows, stride, y);
  }
};

#define PARTITA_KERNELS(name, ...)                                                                               \
  __VA_ARGS__ void multiply_panels_##name(std::int64_t k, const double* a, const double* b, double* tile) {      \
    multiply_panels(k, a, b, tile);                                                                              \
  }                                                                                                              \
  template <class T>                                                                                             \
  __VA_ARGS__ double dot_##name(std::int64_t n, const double* x, const T* y) {                                   \
    return dot_product(n, x, y);                                                                                 \
  }                                                                                                              \
  template <class T>                                                                                             \
  __VA_ARGS__ void rows_##name(std::int64_t n, const double* x, const T* rows, std::int64_t stride, double* y) { \
    add_four_rows(n, x, rows, stride, y);                                                                        \
  }                                                                                                              \
  constexpr Kernels kernels_##name = {multiply_panels_##name, dot_##name<float>, dot_##name<double>,             \
                                      rows_##name<float>, rows_##name<double>};
PARTITA_KERNELS(baseline)
#if defined(__x86_64__)
PARTITA_KERNELS(avx2, __attribute__((target("avx2,fma"))))
PARTITA_KERNELS(avx512, __attribute__((target("avx512f,fma"))))
#endif
#undef PARTITA_KERNELS

const Kernels& kernels_of_host() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kernels_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernels_avx2;
#endif
  return kernels_baseline;
}

const Kernels& best_kernels() {
  static const Kernels& best = kernels_of_host();
  return best;
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
  const auto multiply = best_kernels().multiply_panels;
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
        StopsLoops::check();
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

/// y[j * y_stride] += sum of x[p] b[p, j]
template <class T>
void add_vector_times_matrix(std::int64_t n, std::int64_t k, const T* x, std::int64_t x_stride, MatrixView<T> b,
                             double* y, std::int64_t y_stride) {
  const Kernels& best = best_kernels();
  std::vector<double> factors(static_cast<std::size_t>(k));
  for (std::int64_t p = 0; p < k; ++p) factors[static_cast<std::size_t>(p)] = static_cast<double>(x[p * x_stride]);
  if (b.row_stride == 1) {
    for (std::int64_t j : steps(n, k)) y[j * y_stride] += best.dot(k, factors.data(), &b.at(0, j));
    return;
  }
  std::array<double, 512> sums;  // stay in the level 1 cache while rows go by
  for (std::int64_t first = 0; first < n; first += std::ssize(sums)) {
    StopsLoops::check();
    const std::int64_t count = std::min<std::int64_t>(std::ssize(sums), n - first);
    sums.fill(0);
    std::int64_t p = 0;
    for (; b.column_stride == 1 && p + 4 <= k; p += 4)
      best.add_rows(count, factors.data() + p, &b.at(p, first), b.row_stride, sums.data());
    for (; p < k; ++p)
      for (std::int64_t j = 0; j < count; ++j)
        sums[static_cast<std::size_t>(j)] +=
            factors[static_cast<std::size_t>(p)] * static_cast<double>(b.at(p, first + j));
    for (std::int64_t j = 0; j < count; ++j) y[(first + j) * y_stride] += sums[static_cast<std::size_t>(j)];
  }
}

template <class T>
void add_plain(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, AccumulateType<T>* c,
               std::int64_t c_row_stride) {
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p : steps(k, n)) {
      const AccumulateType<T> x(a.at(i, p));
      AccumulateType<T>* row = c + i * c_row_stride;
      for (std::int64_t j = 0; j < n; ++j) row[j] = multiply_add(row[j], x, AccumulateType<T>(b.at(p, j)));
    }
}

}  // namespace

template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, AccumulateType<T>* c,
          std::int64_t c_row_stride, bool accumulate) {
  if (!accumulate)
    for (std::int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_row_stride, n, AccumulateType<T>(0));
  if constexpr (std::is_floating_point_v<T>) {
    if (m > 1 && n > 1) return add_blocked(m, n, k, a, b, c, c_row_stride);
    if (m == 1) return add_vector_times_matrix(n, k, a.data, a.column_stride, b, c, 1);
    const MatrixView<T> transposed{a.data, a.column_stride, a.row_stride};
    if (n == 1) add_vector_times_matrix(m, k, b.data, b.row_stride, transposed, c, c_row_stride);
  } else {
    add_plain(m, n, k, a, b, c, c_row_stride);
  }
}

#define PARTITA_INSTANTIATE(T)                                                                                   \
  template void gemm(std::int64_t, std::int64_t, std::int64_t, MatrixView<T>, MatrixView<T>, AccumulateType<T>*, \
                     std::int64_t, bool);
PARTITA_INSTANTIATE(float)
PARTITA_INSTANTIATE(double)
PARTITA_INSTANTIATE(std::int64_t)
PARTITA_INSTANTIATE(std::complex<float>)
PARTITA_INSTANTIATE(std::complex<double>)
#undef PARTITA_INSTANTIATE

}  // namespace partita::kernels
