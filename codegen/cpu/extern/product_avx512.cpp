#ifdef __x86_64__
#include <immintrin.h>

#include "codegen/cpu/extern/product_kernel.h"

namespace partita::codegen {
namespace {

// A panel has 48 columns, the last one fewer: a multiple of 16, zeros beyond the matrix. Its depth is cut into blocks
// that stay in the second cache. In memory: blocks, their panels, rows of a panel.
constexpr int lanes = 16, most_vectors = 3, most_rows = 8;
constexpr std::int64_t panel_width = most_vectors * lanes, most_depth = 1024, line = 16;

std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
std::int64_t padded(std::int64_t columns) {
  return (columns + lanes - 1) / lanes * lanes;
}
std::int64_t elements(std::int64_t depth, std::int64_t columns) {
  return depth * padded(columns);
}
std::int64_t blocks_of(std::int64_t depth) {
  return (depth + most_depth - 1) / most_depth;
}
/// The first of the depth of a block; that of the next one is its end.
std::int64_t begin_of(std::int64_t depth, std::int64_t block) {
  return depth * block / blocks_of(depth);
}
std::int64_t place(std::int64_t depth, std::int64_t columns, std::int64_t block, std::int64_t panel) {
  const std::int64_t begin = begin_of(depth, block), end = begin_of(depth, block + 1);
  return begin * padded(columns) + panel * panel_width * (end - begin);
}

std::int64_t place_of(std::int64_t depth, std::int64_t columns, std::int64_t row, std::int64_t column) {
  std::int64_t block = 0;
  while (row >= begin_of(depth, block + 1)) ++block;
  const std::int64_t panel = column / panel_width, width = smaller(panel_width, padded(columns) - panel * panel_width);
  return place(depth, columns, block, panel) + (row - begin_of(depth, block)) * width + column % panel_width;
}

void pack(const float* right, std::int64_t row, std::int64_t column, std::int64_t depth, std::int64_t columns,
          std::int64_t first, std::int64_t last, float* packed) {
  for (std::int64_t block = 0; block < blocks_of(depth); ++block)
    for (std::int64_t panel = first; panel < last; ++panel) {
      float* to = packed + place(depth, columns, block, panel);
      const float* from = right + panel * panel_width * column;
      const std::int64_t width = smaller(panel_width, padded(columns) - panel * panel_width);
      const std::int64_t n = smaller(width, columns - panel * panel_width);
      const std::int64_t end = begin_of(depth, block + 1);
      if (column == 1 && n == width) {
        for (std::int64_t t = begin_of(depth, block); t < end; ++t, to += width)
          for (std::int64_t j = 0; j < width; j += lanes) _mm512_storeu_ps(to + j, _mm512_loadu_ps(from + t * row + j));
        continue;
      }
      // Blocks of rows whose lines of a matrix that lies by columns stay in the cache.
      for (std::int64_t k = begin_of(depth, block); k < end; k += line, to += line * width)
        for (std::int64_t j = 0; j < width; ++j)
          for (std::int64_t t = k; t < smaller(k + line, end); ++t)
            to[(t - k) * width + j] = j < n ? from[t * row + j * column] : 0;
    }
}

/// out[R, C vectors] = from + left[R, depth] right[depth, C vectors]. While it computes, the memory from `ahead` on is
/// brought to the second cache, a line in every `rarely` + 1 steps.
template <int R, int C, bool From>
void tile(std::int64_t depth, const float* left, std::int64_t left_row, const float* right, const float* from,
          std::int64_t from_row, float* out, std::int64_t out_row, const float* ahead, std::int64_t rarely) {
  constexpr std::int64_t soon = 16;  // steps that take longer than from the second cache to the first
  __m512 sum[R][C];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < C; ++j)
      sum[i][j] = From ? _mm512_loadu_ps(from + i * from_row + j * lanes) : _mm512_setzero_ps();
  for (std::int64_t t = 0; t < depth; ++t, right += C * lanes) {
    __m512 b[C];
#pragma GCC unroll 3
    for (int j = 0; j < C; ++j) {
      b[j] = _mm512_loadu_ps(right + j * lanes);
      __builtin_prefetch(right + (soon * C + j) * lanes, 0, 3);
    }
    if ((t & rarely) == 0) {
      __builtin_prefetch(ahead, 0, 2);
      ahead += line;
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const __m512 a = _mm512_set1_ps(left[i * left_row + t]);
#pragma GCC unroll 3
      for (int j = 0; j < C; ++j) sum[i][j] = _mm512_fmadd_ps(a, b[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < C; ++j) _mm512_storeu_ps(out + i * out_row + j * lanes, sum[i][j]);
}

template <int R, int C, class... Arguments>
void tile_of(std::int64_t rows, bool has_from, Arguments... arguments) {
  if constexpr (R > 1)
    if (rows < R) return tile_of<R - 1, C>(rows, has_from, arguments...);
  has_from ? tile<R, C, true>(arguments...) : tile<R, C, false>(arguments...);
}

/// All rows of a panel of C vectors for one block of the depth, which is added to `from`, if that is an address. `n`:
/// the panel's columns in the matrix.
template <int C>
void panel_of(std::int64_t rows, std::int64_t n, std::int64_t depth, const float* left, std::int64_t left_row,
              const float* right, const float* from, std::int64_t from_row, float* out, std::int64_t out_row,
              const float* ahead) {
  const std::int64_t tiles = (rows + most_rows - 1) / most_rows, lines_ahead = depth * most_vectors;
  const std::int64_t rarely = tiles >= 4 * most_vectors ? 3 : tiles >= 2 * most_vectors ? 1 : 0;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t first = rows * i / tiles, r = rows * (i + 1) / tiles - first;
    const float* begin = from ? from + first * from_row : nullptr;
    const float* next = ahead + lines_ahead * i / tiles * line;
    if (n == C * lanes) {
      tile_of<most_rows, C>(r, from != nullptr, depth, left + first * left_row, left_row, right, begin, from_row,
                            out + first * out_row, out_row, next, rarely);
      continue;
    }
    float whole[most_rows * C * lanes] = {};  // vectors beyond the matrix's columns
    for (std::int64_t y = 0; from && y < r; ++y)
      for (std::int64_t x = 0; x < n; ++x) whole[y * C * lanes + x] = begin[y * from_row + x];
    tile_of<most_rows, C>(r, true, depth, left + first * left_row, left_row, right, whole, C * lanes, whole, C * lanes,
                          next, rarely);
    for (std::int64_t y = 0; y < r; ++y)
      for (std::int64_t x = 0; x < n; ++x) out[(first + y) * out_row + x] = whole[y * C * lanes + x];
  }
}

void run(const ProductProblem& p, std::int64_t first_row, std::int64_t last_row, std::int64_t first,
         std::int64_t last) {
  for (std::int64_t block = 0; block < blocks_of(p.depth); ++block)
    for (std::int64_t panel = first; panel < last; ++panel) {
      const std::int64_t column = panel * panel_width, n = smaller(panel_width, p.columns - column);
      const std::int64_t begin = begin_of(p.depth, block), depth = begin_of(p.depth, block + 1) - begin;
      float* out = p.out + first_row * p.out_row + column;
      const float* from = block > 0 ? out : p.added ? p.added + first_row * p.added_row + column : nullptr;
      // What is needed next, or after the last panel by other rows.
      const bool next_block = panel + 1 == last && block + 1 < blocks_of(p.depth);
      const std::int64_t next = next_block || column + panel_width >= p.columns ? first : panel + 1;
      const auto compute = n > 2 * lanes ? panel_of<3> : n > lanes ? panel_of<2> : panel_of<1>;
      compute(last_row - first_row, n, depth, p.left + first_row * p.left_row + begin, p.left_row,
              p.packed + place(p.depth, p.columns, block, panel), from, block > 0 ? p.out_row : p.added_row, out,
              p.out_row, p.packed + place(p.depth, p.columns, next_block ? block + 1 : block, next));
    }
}

}  // namespace

const ProductKernel product_avx512 = {"avx512", panel_width, elements, place_of, pack, run};

}  // namespace partita::codegen

#endif
