#ifdef __x86_64__
#include <immintrin.h>

#include "codegen/cpu/extern/finish_avx512.inc"
#include "codegen/cpu/extern/product_kernel.h"
#include "codegen/cpu/extern/winograd_kernel.h"

namespace partita::codegen {
namespace {

constexpr std::int64_t lanes = 16, side = 4, step = 2, parts = side * side;

std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
std::int64_t tiles_along(std::int64_t n) {
  return (n + step - 1) / step;
}
std::int64_t part_elements(const WinogradProblem& p) {
  return product_avx512.packed_elements(p.channels, p.results);
}
std::int64_t packed_elements(const WinogradProblem& p) {
  return parts * part_elements(p);
}
std::int64_t scratch_elements(const WinogradProblem& p, std::int64_t rows) {
  return parts * tiles_along(rows) * tiles_along(p.out_width) * (p.channels + p.results);
}

/// G g of 3 values, in place of g.
inline void spread(const __m512 (&g)[3], __m512 (&out)[side]) {
  const __m512 half = _mm512_set1_ps(0.5F), ends = _mm512_add_ps(g[0], g[2]);
  out[0] = g[0];
  out[1] = _mm512_mul_ps(half, _mm512_add_ps(ends, g[1]));
  out[2] = _mm512_mul_ps(half, _mm512_sub_ps(ends, g[1]));
  out[3] = g[2];
}

void pack(const WinogradProblem& p, const WinogradWeights& w, std::int64_t first, std::int64_t last, float* packed) {
  const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i apart = _mm512_mullo_epi32(count, _mm512_set1_epi32(static_cast<int>(w.result)));
  const std::int64_t part = part_elements(p);
  for (std::int64_t c = first; c < last; ++c)
    for (std::int64_t r = 0; r < p.results; r += lanes) {
      const float* from = w.data + r * w.result + c * w.channel;
      __m512 rows[3][side];
      for (int y = 0; y < 3; ++y) {
        __m512 g[3];
        for (int x = 0; x < 3; ++x) {
          const float* at = from + y * w.row + x * w.column;
          g[x] =
              w.result == 1 ? _mm512_loadu_ps(at) : _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, apart, at, 4);
        }
        spread(g, rows[y]);
      }
      float* to = packed + product_avx512.place(p.channels, p.results, c, r);
      for (int x = 0; x < side; ++x) {
        const __m512 g[3] = {rows[0][x], rows[1][x], rows[2][x]};
        __m512 column[side];
        spread(g, column);
        for (int y = 0; y < side; ++y) _mm512_storeu_ps(to + (y * side + x) * part, column[y]);
      }
    }
}

/// B^T d of 4 values.
inline void transform_input(__m512 (&d)[side]) {
  const __m512 a = _mm512_sub_ps(d[0], d[2]), b = _mm512_add_ps(d[1], d[2]), c = _mm512_sub_ps(d[2], d[1]);
  d[3] = _mm512_sub_ps(d[1], d[3]);
  d[0] = a;
  d[1] = b;
  d[2] = c;
}

/// Tiles of the rows' input, as `parts` matrices [tiles, channels]. `zeros`: a pixel beside the image.
void load_tiles(const WinogradProblem& p, const float* input, const float* zeros, std::int64_t first,
                std::int64_t tile_rows, float* to) {
  const std::int64_t across = tiles_along(p.out_width), part = tile_rows * across * p.channels;
  for (std::int64_t ty = 0; ty < tile_rows; ++ty)
    for (std::int64_t tx = 0; tx < across; ++tx, to += p.channels) {
      const float* pixels[side][side];
      for (std::int64_t y = 0; y < side; ++y)
        for (std::int64_t x = 0; x < side; ++x) {
          const std::int64_t row = first + ty * step + y - p.top, column = tx * step + x - p.left;
          const bool within = row >= 0 && row < p.height && column >= 0 && column < p.width;
          pixels[y][x] = within ? input + row * p.in_row + column * p.in_pixel : zeros;
        }
      for (std::int64_t c = 0; c < p.channels; c += lanes) {
        __m512 d[side][side];
        for (int x = 0; x < side; ++x) {
          __m512 column[side];
          for (int y = 0; y < side; ++y) column[y] = _mm512_loadu_ps(pixels[y][x] + c);
          transform_input(column);
          for (int y = 0; y < side; ++y) d[y][x] = column[y];
        }
        for (int y = 0; y < side; ++y) {
          transform_input(d[y]);
          for (int x = 0; x < side; ++x) _mm512_storeu_ps(to + (y * side + x) * part + c, d[y][x]);
        }
      }
    }
}

/// A^T m of 4 values.
inline void transform_result(const __m512 (&m)[side], __m512& a, __m512& b) {
  a = _mm512_add_ps(m[0], _mm512_add_ps(m[1], m[2]));
  b = _mm512_sub_ps(_mm512_sub_ps(m[1], m[2]), m[3]);
}

/// The results of `parts` matrices [tiles, results]. Returns whether they are finite before `finish`.
bool store_tiles(const WinogradProblem& p, const float* from, std::int64_t first, std::int64_t rows, float* out,
                 const Finish& finish) {
  constexpr int infinite_or_nan = 0x01 | 0x08 | 0x10 | 0x80;
  const std::int64_t tile_rows = tiles_along(rows), across = tiles_along(p.out_width);
  const std::int64_t part = tile_rows * across * p.results;
  __mmask16 bad = 0;
  for (std::int64_t ty = 0; ty < tile_rows; ++ty)
    for (std::int64_t tx = 0; tx < across; ++tx, from += p.results) {
      const std::int64_t high = smaller(step, rows - ty * step), wide = smaller(step, p.out_width - tx * step);
      const std::int64_t place = (first + ty * step) * p.out_row + tx * step * p.out_pixel;
      for (std::int64_t c = 0; c < p.results; c += lanes) {
        __m512 half[step][side];
        for (int x = 0; x < side; ++x) {
          __m512 m[side];
          for (int y = 0; y < side; ++y) m[y] = _mm512_loadu_ps(from + (y * side + x) * part + c);
          transform_result(m, half[0][x], half[1][x]);
        }
        const __m512 bias = p.bias ? _mm512_loadu_ps(p.bias + c) : _mm512_setzero_ps();
        for (std::int64_t y = 0; y < high; ++y) {
          __m512 r[step];
          transform_result(half[y], r[0], r[1]);
          const std::int64_t at = place + y * p.out_row + c;
          for (std::int64_t x = 0; x < wide; ++x) {
            __m512 value[1][1] = {{p.bias ? _mm512_add_ps(r[x], bias) : r[x]}};
            bad |= _mm512_fpclass_ps_mask(value[0][0], infinite_or_nan);
            finish.of(value, at + x * p.out_pixel, 0, all_lanes);
            _mm512_storeu_ps(out + at + x * p.out_pixel, value[0][0]);
          }
        }
      }
    }
  return bad == 0;
}

bool run(const WinogradProblem& p, const float* input, const float* packed, std::int64_t first, std::int64_t rows,
         float* out, const RegisterWork& work, float* scratch) {
  alignas(64) static constexpr float zeros[1024] = {};
  const std::int64_t tile_rows = tiles_along(rows), tiles = tile_rows * tiles_along(p.out_width);
  float *left = scratch, *products = scratch + parts * tiles * p.channels;
  load_tiles(p, input, zeros, first, tile_rows, left);
  ProductProblem product;
  product.columns = p.results;
  product.depth = product.left_row = p.channels;
  product.out_row = p.results;
  const std::int64_t panels = (p.results + product_avx512.panel_columns - 1) / product_avx512.panel_columns;
  for (std::int64_t i = 0; i < parts; ++i) {
    product.left = left + i * tiles * p.channels;
    product.packed = packed + i * part_elements(p);
    product.out = products + i * tiles * p.results;
    product_avx512.run(product, 0, tiles, 0, panels);
  }
  return store_tiles(p, products, first, rows, out, Finish(work));
}

}  // namespace

const WinogradKernel winograd_avx512 = {
    "avx512 winograd", &product_avx512, packed_elements, pack, scratch_elements, run};

}  // namespace partita::codegen

#endif
