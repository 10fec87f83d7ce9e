#ifdef __x86_64__
#include <immintrin.h>

#include "codegen/cpu/extern/finish_avx512.inc"
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

/// A tile of the result: out[R, C vectors] = from + left[R, depth] right[depth, C vectors], then `finish`, if there is
/// any. `last`: the lanes of the last vector. While it computes, the memory from `ahead` on is brought to the second
/// cache, a line in every `rarely` + 1 steps.
struct Tile {
  std::int64_t depth;
  const float* left;
  std::int64_t left_row;
  const float* right;
  const float* from;  ///< null: zeros
  std::int64_t from_row;
  float* out;
  std::int64_t at, out_row;  ///< the tile's place in `out`
  __mmask16 last;
  const float* ahead;
  std::int64_t rarely;
  const Finish* finish;
};

template <int R, int C>
void compute(const Tile& tile) {
  constexpr std::int64_t soon = 16;  // steps that take longer than from the second cache to the first
  __m512 sum[R][C];
  const auto lanes_of = [&](int j) { return j + 1 < C ? all_lanes : tile.last; };
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < C; ++j)
      sum[i][j] = tile.from ? _mm512_maskz_loadu_ps(lanes_of(j), tile.from + i * tile.from_row + j * lanes)
                            : _mm512_setzero_ps();
  const float *right = tile.right, *left = tile.left, *ahead = tile.ahead;
  const std::int64_t left_row = tile.left_row, rarely = tile.rarely;
  for (std::int64_t t = 0, depth = tile.depth; t < depth; ++t, right += C * lanes) {
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
  const Tile own = tile;  // which the stores do not change
  if (own.finish) own.finish->of(sum, own.at, own.out_row, own.last);
  put(own.out + own.at, own.out_row, sum, own.last);
}

template <int R, int C>
void compute_rows(std::int64_t rows, const Tile& tile) {
  if constexpr (R > 1)
    if (rows < R) return compute_rows<R - 1, C>(rows, tile);
  compute<R, C>(tile);
}

/// All rows of a panel of C vectors for one block of the depth. `tile`: that of the first row.
template <int C>
void panel_of(std::int64_t rows, Tile tile) {
  const std::int64_t tiles = (rows + most_rows - 1) / most_rows, lines_ahead = tile.depth * most_vectors;
  tile.rarely = tiles >= 4 * most_vectors ? 3 : tiles >= 2 * most_vectors ? 1 : 0;
  const float* const ahead = tile.ahead;
  for (std::int64_t i = 0, first = 0; i < tiles; ++i) {
    const std::int64_t r = rows * (i + 1) / tiles - first;
    tile.ahead = ahead + lines_ahead * i / tiles * line;
    compute_rows<most_rows, C>(r, tile);
    tile.left += r * tile.left_row;
    if (tile.from) tile.from += r * tile.from_row;
    tile.at += r * tile.out_row;
    first += r;
  }
}

void run(const ProductProblem& p, std::int64_t first_row, std::int64_t last_row, std::int64_t first,
         std::int64_t last) {
  const Finish finish(p.work);
  const std::int64_t blocks = blocks_of(p.depth);
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t panel = first; panel < last; ++panel) {
      const std::int64_t column = panel * panel_width, n = smaller(panel_width, p.columns - column);
      const std::int64_t begin = begin_of(p.depth, block), at = first_row * p.out_row + column;
      // What is needed next, or after the last panel by other rows.
      const bool next_block = panel + 1 == last && block + 1 < blocks;
      const std::int64_t next = next_block || column + panel_width >= p.columns ? first : panel + 1;
      const float* from = block > 0 ? p.out + at : p.added ? p.added + first_row * p.added_row + column : nullptr;
      const Tile tile{.depth = begin_of(p.depth, block + 1) - begin,
                      .left = p.left + first_row * p.left_row + begin,
                      .left_row = p.left_row,
                      .right = p.packed + place(p.depth, p.columns, block, panel),
                      .from = from,
                      .from_row = block > 0 ? p.out_row : p.added_row,
                      .out = p.out,
                      .at = at,
                      .out_row = p.out_row,
                      .last = n % lanes == 0 ? all_lanes : lanes_before(n % lanes),
                      .ahead = p.packed + place(p.depth, p.columns, next_block ? block + 1 : block, next),
                      .rarely = 0,
                      .finish = block + 1 == blocks && finish.any() ? &finish : nullptr};
      const auto panel_rows = n > 2 * lanes ? panel_of<3> : n > lanes ? panel_of<2> : panel_of<1>;
      panel_rows(last_row - first_row, tile);
    }
}

}  // namespace

const ProductKernel product_avx512 = {"avx512", panel_width, elements, place_of, pack, run};

}  // namespace partita::codegen

#endif
