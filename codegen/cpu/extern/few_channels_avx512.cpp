#ifdef __x86_64__
#include <immintrin.h>

#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/finish_avx512.inc"

namespace partita::codegen {
namespace {

constexpr std::int64_t lanes = 16;
constexpr int registers = 24;  // of sums; others hold weights and a value of the input

/// V vectors of a group's channels of one image.
template <int V>
struct Vectors {
  static constexpr int most = registers / V < 14 ? registers / V : 14;  ///< pixels at once

  const DirectProblem& p;
  const Finish& finish;
  const float* input;    ///< of the group
  const float* weights;  ///< of the first vector; the next one's are `weights_of_vector` further
  std::int64_t weights_of_vector;
  float* out;
  std::int64_t first;  ///< channel of the result
  __mmask16 mask;      ///< of the last vector

  __m512 start(int v) const {
    const float* at = p.bias + first + v * lanes;
    return v + 1 < V ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(mask, at);
  }
  template <int N>
  void store(std::int64_t y, std::int64_t x, __m512 (&sum)[N][V]) const {
    const std::int64_t at = y * p.out_row + x * p.out_pixel + first;
    finish.of(sum, at, p.out_pixel, mask);
    put(out + at, p.out_pixel, sum, mask);
  }

  /// The part of the window that meets the image at one dimension: taps [from, to).
  struct Taps {
    std::int64_t from, to;
    Taps(std::int64_t at, std::int64_t dilation, std::int64_t window, std::int64_t size)
        : from(at < 0 ? (-at + dilation - 1) / dilation : 0),
          to(at + (window - 1) * dilation < size ? window
             : size <= at                        ? 0
                                                 : (size - at + dilation - 1) / dilation) {}
  };
  /// What pixel (y, x) depends on first, be it in the image or not.
  const float* window(std::int64_t y, std::int64_t x) const {
    return input + (y * p.stride_y - p.top) * p.in_row + (x * p.stride_x - p.left) * p.in_pixel;
  }

  /// N adjacent pixels that meet the image with all columns of the window.
  template <int N>
  void inner(std::int64_t y, std::int64_t x, Taps rows) const {
    __m512 sum[N][V];
#pragma GCC unroll 14
    for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[i][v] = start(v);
    const std::int64_t step = p.stride_x * p.in_pixel, of_row = p.window_width * p.in_channels;
    const float* at = window(y, x);
    for (std::int64_t k = rows.from * of_row; k < rows.to * of_row; ++k) {
      __m512 weight[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) weight[v] = _mm512_loadu_ps(weights + k * lanes + v * weights_of_vector);
      const float* from = at + p.offsets[k];
#pragma GCC unroll 14
      for (int i = 0; i < N; ++i) {
        const __m512 in = _mm512_set1_ps(from[i * step]);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[i][v] = _mm512_fmadd_ps(in, weight[v], sum[i][v]);
      }
    }
    store(y, x, sum);
  }

  template <int N>
  void some(int n, std::int64_t y, std::int64_t x, Taps rows) const {
    if (n == N)
      inner<N>(y, x, rows);
    else if constexpr (N > 1)
      some<N - 1>(n, y, x, rows);
  }

  /// One pixel at the image's border, as several sums of which none waits for another.
  __attribute__((noinline)) void outer(std::int64_t y, std::int64_t x, Taps rows) const {
    constexpr int parts = 4;
    const Taps columns(x * p.stride_x - p.left, p.dilation_x, p.window_width, p.width);
    __m512 sum[parts][V] = {};
    for (int v = 0; v < V; ++v) sum[0][v] = start(v);
    const float* at = window(y, x);
    const auto add = [&](int i, std::int64_t k) {
      const __m512 in = _mm512_set1_ps(at[p.offsets[k]]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v)
        sum[i][v] = _mm512_fmadd_ps(in, _mm512_loadu_ps(weights + k * lanes + v * weights_of_vector), sum[i][v]);
    };
    for (std::int64_t ky = rows.from; ky < rows.to; ++ky) {
      std::int64_t k = (ky * p.window_width + columns.from) * p.in_channels;
      const std::int64_t end = (ky * p.window_width + columns.to) * p.in_channels;
      for (; k + parts <= end; k += parts)
#pragma GCC unroll 4
        for (int i = 0; i < parts; ++i) add(i, k + i);
      for (; k < end; ++k) add(0, k);
    }
    __m512 whole[1][V];
    for (int v = 0; v < V; ++v)
      whole[0][v] = _mm512_add_ps(_mm512_add_ps(sum[0][v], sum[1][v]), _mm512_add_ps(sum[2][v], sum[3][v]));
    store(y, x, whole);
  }

  void row(std::int64_t y) const {
    const std::int64_t reach = (p.window_width - 1) * p.dilation_x, last = p.width - 1 - reach + p.left;
    const auto within = [&](std::int64_t x) { return x < p.out_width ? x : p.out_width; };
    const std::int64_t begin = within((p.left + p.stride_x - 1) / p.stride_x);
    const std::int64_t past = last < 0 ? 0 : within(last / p.stride_x + 1), end = past > begin ? past : begin;
    const std::int64_t shares = (end - begin + most - 1) / most;
    const Taps rows(y * p.stride_y - p.top, p.dilation_y, p.window_height, p.height);
    for (std::int64_t x = 0; x < begin; ++x) outer(y, x, rows);
    for (std::int64_t i = 0; i < shares; ++i) {
      const std::int64_t x = begin + (end - begin) * i / shares, next = begin + (end - begin) * (i + 1) / shares;
      some<most>(static_cast<int>(next - x), y, x, rows);
    }
    for (std::int64_t x = end; x < p.out_width; ++x) outer(y, x, rows);
  }
};

std::int64_t vectors_of(const DirectProblem& p) {
  return (p.out_channels + lanes - 1) / lanes;
}
std::int64_t elements_of_vector(const DirectProblem& p) {
  return p.window_height * p.window_width * p.in_channels * lanes;
}

bool takes(const DirectProblem& p) {
  // Lanes beyond a group's channels compute nothing. With more channels oneDNN is as fast, or faster where weights take
  // more memory than images.
  constexpr std::int64_t colours = 4, few = 16;
  return p.in_channels > 0 && p.out_channels > 0 && 4 * p.out_channels >= 3 * vectors_of(p) * lanes &&
         p.in_channels <= (p.groups == 1 ? colours : few);
}

std::int64_t packed_elements(const DirectProblem& p) {
  return p.groups * vectors_of(p) * elements_of_vector(p);
}

/// For each group and each vector of its result's channels: [window, in_channels, lanes].
void pack(const DirectProblem& p, const float* weight, const std::int64_t* s, float* to) {
  for (std::int64_t g = 0; g < p.groups; ++g)
    for (std::int64_t first = 0; first < p.out_channels; first += lanes)
      for (std::int64_t ky = 0; ky < p.window_height; ++ky)
        for (std::int64_t kx = 0; kx < p.window_width; ++kx)
          for (std::int64_t in = 0; in < p.in_channels; ++in, to += lanes) {
            const float* from = weight + (g * p.out_channels + first) * s[0] + in * s[1] + ky * s[2] + kx * s[3];
            for (std::int64_t c = 0; c < lanes && first + c < p.out_channels; ++c) to[c] = from[c * s[0]];
          }
}

void run(const DirectProblem& p, const float* input, std::int64_t first, std::int64_t rows, float* out,
         const RegisterWork& work) {
  const Finish finish(work);
  const std::int64_t of_vector = elements_of_vector(p), vectors = vectors_of(p), rest = p.out_channels % lanes;
  const __mmask16 last = rest == 0 ? all_lanes : lanes_before(rest);
  // Groups within rows, because the channels of a pixel are adjacent. Vectors of a group read the same values, and
  // their weights stay in cache.
  for (std::int64_t v = 0; v < vectors; v += 2)
    for (std::int64_t y = first; y < first + rows; ++y)
      for (std::int64_t g = 0; g < p.groups; ++g) {
        const float *in = input + g * p.in_channels * p.in_channel, *weights = p.packed + (g * vectors + v) * of_vector;
        const std::int64_t channel = g * p.out_channels + v * lanes;
        if (v + 1 < vectors)
          Vectors<2>{p, finish, in, weights, of_vector, out, channel, v + 2 < vectors ? all_lanes : last}.row(y);
        else
          Vectors<1>{p, finish, in, weights, of_vector, out, channel, last}.row(y);
      }
}

}  // namespace

const DirectKernel few_channels_avx512 = {"avx512 few channels", takes, packed_elements, pack, run};

}  // namespace partita::codegen

#endif
