#ifdef __x86_64__
#include <immintrin.h>

#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/finish_avx512.inc"

namespace partita::codegen {
namespace {

constexpr std::int64_t side = 3, lanes = 16;

/// V vectors of channels of one image, from a channel on.
template <int V>
struct Channels {
  const DirectProblem& p;
  const Finish& finish;
  const float* input;
  float* out;
  std::int64_t first;
  __mmask16 mask;  ///< of the last vector

  __m512 load(const float* at, int v) const {
    return v + 1 < V ? _mm512_loadu_ps(at + v * lanes) : _mm512_maskz_loadu_ps(mask, at + v * lanes);
  }
  __m512 weight(std::int64_t ky, std::int64_t kx, int v) const {
    return load(p.packed + (ky * side + kx) * p.groups + first, v);
  }
  __m512 start(int v) const { return load(p.bias + first, v); }
  /// Stores N pixels from x on.
  template <int N>
  void store(std::int64_t y, std::int64_t x, __m512 (&sum)[N][V]) const {
    const std::int64_t at = y * p.out_row + x * p.out_pixel + first;
    finish.of(sum, at, p.out_pixel, mask);
    put(out + at, p.out_pixel, sum, mask);
  }

  /// One pixel, with the rows and columns of the weight that meet the image.
  __attribute__((noinline)) void pixel(std::int64_t y, std::int64_t x) const {
    const std::int64_t iy = y * p.stride_y - p.top, ix = x * p.stride_x - p.left;
    __m512 sum[1][V];
    for (int v = 0; v < V; ++v) sum[0][v] = start(v);
    const std::int64_t top = iy < 0 ? -iy : 0, bottom = iy + side > p.height ? p.height - iy : side;
    const std::int64_t left = ix < 0 ? -ix : 0, right = ix + side > p.width ? p.width - ix : side;
    for (std::int64_t ky = top; ky < bottom; ++ky)
      for (std::int64_t kx = left; kx < right; ++kx) {
        const float* from = input + (iy + ky) * p.in_row + (ix + kx) * p.in_pixel + first;
        for (int v = 0; v < V; ++v) sum[0][v] = _mm512_fmadd_ps(load(from, v), weight(ky, kx, v), sum[0][v]);
      }
    store(y, x, sum);
  }

  /// A row of which weights' rows [K0, K1) meet the image. Stride S.
  template <int S, int K0, int K1>
  void row(std::int64_t y) const {
    constexpr int pixels = 4, columns = S * (pixels - 1) + side;
    // Those all of whose columns are in the image.
    const std::int64_t begin = (p.left + S - 1) / S;
    const std::int64_t past = p.width - side + p.left < 0 ? 0 : (p.width - side + p.left) / S + 1;
    const std::int64_t end = past < p.out_width ? past : p.out_width;
    if (end - begin < pixels) {
      for (std::int64_t x = 0; x < p.out_width; ++x) pixel(y, x);
      return;
    }
    for (std::int64_t x = 0; x < begin; ++x) pixel(y, x);
    for (std::int64_t x = end; x < p.out_width; ++x) pixel(y, x);
    __m512 w[K1 - K0][side][V];
    for (int ky = 0; ky < K1 - K0; ++ky)
      for (int kx = 0; kx < side; ++kx)
        for (int v = 0; v < V; ++v) w[ky][kx][v] = weight(K0 + ky, kx, v);
    const float* rows = input + (y * p.stride_y - p.top + K0) * p.in_row + first;
    for (std::int64_t x = begin; x < end; x += pixels) {
      if (x > end - pixels) x = end - pixels;  // some are computed again
      const float* from = rows + (x * S - p.left) * p.in_pixel;
      __m512 sum[pixels][V];
#pragma GCC unroll 4
      for (int i = 0; i < pixels; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[i][v] = start(v);
#pragma GCC unroll 3
      for (int ky = 0; ky < K1 - K0; ++ky)
#pragma GCC unroll 9
        for (int j = 0; j < columns; ++j)
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) {
            const __m512 in = load(from + ky * p.in_row + j * p.in_pixel, v);
#pragma GCC unroll 4
            for (int i = 0; i < pixels; ++i) {
              const int kx = j - S * i;
              if (kx >= 0 && kx < side) sum[i][v] = _mm512_fmadd_ps(in, w[ky][kx][v], sum[i][v]);
            }
          }
      store(y, x, sum);
    }
  }

  template <int S>
  void rows(std::int64_t y, std::int64_t end) const {
    for (; y < end; ++y) {
      const std::int64_t iy = y * p.stride_y - p.top;
      const bool above = iy >= 0, within = iy + 1 >= 0 && iy + 1 < p.height, below = iy + 2 < p.height;
      if (above && within && below)
        row<S, 0, 3>(y);
      else if (above && within)
        row<S, 0, 2>(y);
      else if (within && below)
        row<S, 1, 3>(y);
      else
        for (std::int64_t x = 0; x < p.out_width; ++x) pixel(y, x);
    }
  }
};

template <int V>
void channels(const DirectProblem& p, const Finish& finish, const float* input, float* out, std::int64_t first,
              __mmask16 mask, std::int64_t begin, std::int64_t end) {
  const Channels<V> some{p, finish, input, out, first, mask};
  p.stride_x == 1 ? some.template rows<1>(begin, end) : some.template rows<2>(begin, end);
}

bool takes(const DirectProblem& p) {
  return p.in_channels == 1 && p.out_channels == 1 && p.groups >= lanes && p.window_height == side &&
         p.window_width == side && p.stride_x <= 2 && p.dilation_y == 1 && p.dilation_x == 1 && p.in_channel == 1;
}

std::int64_t packed_elements(const DirectProblem& p) {
  return side * side * p.groups;
}

/// [3, 3, channels]
void pack(const DirectProblem& p, const float* weight, const std::int64_t* s, float* to) {
  for (std::int64_t ky = 0; ky < side; ++ky)
    for (std::int64_t kx = 0; kx < side; ++kx)
      for (std::int64_t c = 0; c < p.groups; ++c) *to++ = weight[c * s[0] + ky * s[2] + kx * s[3]];
}

void run(const DirectProblem& p, const float* input, std::int64_t first, std::int64_t rows, float* out,
         const RegisterWork& work) {
  const Finish finish(work);
  std::int64_t c = 0;
  for (; c + 2 * lanes <= p.groups; c += 2 * lanes)
    channels<2>(p, finish, input, out, c, all_lanes, first, first + rows);
  for (; c < p.groups; c += lanes) {
    const std::int64_t left = p.groups - c;
    channels<1>(p, finish, input, out, c, left >= lanes ? all_lanes : lanes_before(left), first, first + rows);
  }
}

}  // namespace

const DirectKernel depthwise_avx512 = {"avx512 depthwise", takes, packed_elements, pack, run};

}  // namespace partita::codegen

#endif
