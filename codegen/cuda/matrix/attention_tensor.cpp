// Attention on tensor cores. A block has four warps with 16 rows each, whose products with tiles of 32 rows of the
// other side are fragments of mma.sync: what a lane has of a score it needs again as a factor, so that scores never
// leave the registers. The same three functions as in attention.cpp, by the same steps.
#include "codegen/cuda/matrix/attention_tensor.h"

#include "codegen/cuda/matrix/contraction.h"

namespace partita::codegen {
namespace {

constexpr int block_rows = 64, block_tile = 32;

/// Fragments of mma() and tiles in shared memory. In a row of the left factor a lane has the columns of `k` from
/// lane % 4 on, and of the right factor the column lane / 4.
constexpr std::string_view fragments = R"(
#ifndef PARTITA_MMA_FRAGMENTS
#define PARTITA_MMA_FRAGMENTS
// What a fragment has of a number or of two neighbours in k.
__device__ inline unsigned mma_word(Half a, Half b) { return a.bits | static_cast<unsigned>(b.bits) << 16; }
__device__ inline unsigned mma_word(BFloat16 a, BFloat16 b) { return a.bits | static_cast<unsigned>(b.bits) << 16; }
__device__ inline void mma_number(Half& to, float v) { to = to_half(v); }
__device__ inline void mma_number(BFloat16& to, float v) { to = to_bfloat16(v); }
__device__ inline void mma_number(float& to, float v) { to = to_tf32(v); }
template <class T>
__device__ T mma_element(T v) { return v; }
__device__ inline float mma_element(float v) { return to_tf32(v); }
// The left factor's fragment from column k on; at(0, k) is of the lane's row, at(1, k) of that 8 rows below.
template <class T, class At>
__device__ void mma_left(unsigned (&a)[4], T, int k, const At& at) {
  const int column = k + threadIdx.x % 4 * 2;
#pragma unroll
  for (int r = 0; r < 4; ++r) a[r] = mma_word(at(r % 2, column + r / 2 * 8), at(r % 2, column + r / 2 * 8 + 1));
}
template <class At>
__device__ void mma_left(unsigned (&a)[4], float, int k, const At& at) {
  const int column = k + threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 4; ++r) a[r] = bitcast<unsigned>(at(r % 2, column + r / 2 * 4));
}
template <class T>
__device__ void mma_right(unsigned (&b)[2], const T* row, int step) {
#pragma unroll
  for (int r = 0; r < 2; ++r) b[r] = reinterpret_cast<const unsigned*>(row)[step * 8 + threadIdx.x % 4 + r * 4];
}
// Results of mma() as a left factor. A lane's columns of a result are neighbours; where those of a factor are not, k has
// another order, which the right factor follows.
template <class T, int n>
__device__ void mma_left_of(unsigned (&a)[4], T, const float (&c)[n][4], int step) {
  T v[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) mma_number(v[i], c[step * 2 + i / 4][i % 4]);
#pragma unroll
  for (int r = 0; r < 4; ++r) a[r] = mma_word(v[r * 2], v[r * 2 + 1]);
}
template <int n>
__device__ void mma_left_of(unsigned (&a)[4], float, const float (&c)[n][4], int step) {
#pragma unroll
  for (int r = 0; r < 4; ++r) a[r] = bitcast<unsigned>(to_tf32(c[step][r % 2 * 2 + r / 2]));
}
template <class T>
__device__ void mma_right_of(unsigned (&b)[2], const T* row, int step) { mma_right(b, row, step); }
__device__ inline void mma_right_of(unsigned (&b)[2], const float* row, int step) {
#pragma unroll
  for (int r = 0; r < 2; ++r) b[r] = bitcast<unsigned>(row[step * 8 + threadIdx.x % 4 * 2 + r]);
}
// The fragments of the rows `mine` and mine + 8 of a matrix with `size` rows and `width` columns.
template <class T, int steps, class Index, class At>
__device__ void mma_take(T, unsigned (&to)[steps][4], Index mine, Index size, int width, const At& at) {
#pragma unroll
  for (int step = 0; step < steps; ++step)
    mma_left(to[step], T{}, step * (sizeof(T) == 2 ? 16 : 8), [&](int below, int d) {
      const Index i = mine + below * 8;
      return i < size && d < width ? mma_element(at(i, static_cast<Index>(d))) : T{};
    });
}
// Rows from `first` on of a matrix of `size` rows, whose elements at(row, column) gives; zeros beyond.
template <class T, int tile, int pitch, class Index, class At>
__device__ void mma_rows(T (&to)[tile][pitch], int width, int depth, Index first, Index size, const At& at) {
  for (int e = static_cast<int>(threadIdx.x); e < tile * depth; e += 128) {
    const Index i = first + e / depth;
    to[e / depth][e % depth] = i < size && e % depth < width ? mma_element(at(i, static_cast<Index>(e % depth))) : T{};
  }
}
// The same, a row of `to` for each column.
template <class T, int depth, int pitch, class Index, class At>
__device__ void mma_columns(T (&to)[depth][pitch], int width, int tile, Index first, Index size, const At& at) {
  for (int e = static_cast<int>(threadIdx.x); e < tile * depth; e += 128) {
    const Index i = first + e / depth;
    to[e % depth][e / depth] = i < size && e % depth < width ? mma_element(at(i, static_cast<Index>(e % depth))) : T{};
  }
}
#endif
)";

constexpr std::string_view mma_beginning = R"(
// <what> of <origin> on tensor cores: <queries> queries, <keys> keys, width <width>, <batch> x <heads> heads<causal_words>.
extern "C" __global__ void __launch_bounds__(128, 1) <name>({parameters}) {
  using Index = {index};
  using Element = <element>;
  <fixed> Index queries = <queries>, keys = <keys>;
  constexpr int width = <width>, rows = 64, tile = 32, padding = <padding>, mma_k = <mma_k>;
  constexpr int steps = (width + mma_k - 1) / mma_k, depth = steps * mma_k;  // the width with zeros behind it
  constexpr int columns = depth / 8, tile_columns = tile / 8, tile_steps = tile / mma_k;
  <fixed> unsigned tiles = (<count> + rows - 1) / rows, heads = <heads>;
  const Index first = static_cast<Index>(blockIdx.x % tiles) * rows;
  [[maybe_unused]] const Index h = static_cast<Index>(blockIdx.x / tiles % heads);
  [[maybe_unused]] const Index b = static_cast<Index>(blockIdx.x / tiles / heads);
  const int tid = static_cast<int>(threadIdx.x), in_row = tid % 32 / 4, in_column = tid % 4;
  const Index mine = first + tid / 32 * 16 + in_row;  // the first of the lane's two rows
  const float scale = static_cast<float>(<scale>);
  [[maybe_unused]] const auto sum_of_row = [&](float v) {
    v += __shfl_xor_sync(~0u, v, 1, 32);
    return v + __shfl_xor_sync(~0u, v, 2, 32);
  };
  // The mask's term of a score. What lies beyond, and with a causal mask what comes after the query, has no weight.
  const auto masked = [&](Index i, Index j, float score) -> float {
    using Sum = float;
    if (i >= queries || j >= keys || (<causal> && j > i)) return -INFINITY;
    return <masked>;
  };
  const auto query_at = [&](Index i, Index d) { return <query>; };
  const auto key_at = [&](Index i, Index d) { return <key>; };
  const auto value_at = [&](Index i, Index d) { return <value>; };
  // Products with the rows of a tile.
  const auto multiply = [&](float (&sums)[tile_columns][4], const unsigned (&left)[steps][4],
                            const Element (&right)[tile][depth + padding]) {
#pragma unroll
    for (int step = 0; step < steps; ++step)
#pragma unroll
      for (int n = 0; n < tile_columns; ++n) {
        unsigned factor[2];
        mma_right(factor, right[n * 8 + in_row], step);
        mma(sums[n], left[step], factor, Element{});
      }
  };
  // Results of multiply() times the columns of a tile.
  const auto add_products = [&](float (&sums)[columns][4], const float (&left)[tile_columns][4],
                                const Element (&right)[depth][tile + padding]) {
#pragma unroll
    for (int step = 0; step < tile_steps; ++step) {
      unsigned factor[4];
      mma_left_of(factor, Element{}, left, step);
#pragma unroll
      for (int n = 0; n < columns; ++n) {
        unsigned other[2];
        mma_right_of(other, right[n * 8 + in_row], step);
        mma(sums[n], factor, other, Element{});
      }
    }
  };
)";

constexpr std::string_view mma_forward_body = R"(
  alignas(16) __shared__ Element ks[tile][depth + padding];
  alignas(16) __shared__ Element vt[depth][tile + padding];
  unsigned q[steps][4];
  mma_take(Element{}, q, mine, queries, width, query_at);
  float result[columns][4] = {}, most[2] = {-INFINITY, -INFINITY}, total[2] = {};
  const Index end = <causal> && first + rows < keys ? first + rows : keys;
  for (Index from = 0; from < end; from += tile) {
    __syncthreads();  // the last tile was read
    mma_rows(ks, width, depth, from, keys, key_at);
    mma_columns(vt, width, tile, from, keys, value_at);
    __syncthreads();
    float scores[tile_columns][4] = {}, high[2] = {most[0], most[1]}, shift[2], shrink[2], part[2] = {};
    multiply(scores, q, ks);
#pragma unroll
    for (int n = 0; n < tile_columns; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        scores[n][c] = masked(mine + c / 2 * 8, from + n * 8 + in_column * 2 + c % 2, scores[n][c] * scale);
        high[c / 2] = Max(high[c / 2], scores[n][c]);
      }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      high[r] = Max(high[r], __shfl_xor_sync(~0u, high[r], 1, 32));
      high[r] = Max(high[r], __shfl_xor_sync(~0u, high[r], 2, 32));
      // A query that has attended to no key yet has the maximum -infinity.
      shift[r] = high[r] == -INFINITY ? 0.0f : high[r];
      shrink[r] = exp(most[r] - shift[r]);
      most[r] = high[r];
    }
#pragma unroll
    for (int n = 0; n < tile_columns; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        scores[n][c] = exp(scores[n][c] - shift[c / 2]);
        part[c / 2] += scores[n][c];
      }
#pragma unroll
    for (int r = 0; r < 2; ++r) total[r] = fma(total[r], shrink[r], sum_of_row(part[r]));
#pragma unroll
    for (int n = 0; n < columns; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) result[n][c] *= shrink[c / 2];
    add_products(result, scores, vt);
  }
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const Index i = mine + c / 2 * 8;
      [[maybe_unused]] const Index d = n * 8 + in_column * 2 + c % 2;
      [[maybe_unused]] const float value = result[n][c] * (total[c / 2] == 0 ? 1.0f : 1 / total[c / 2]);
      if (i < queries && d < width) {
<store_out>
      }
    }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const Index i = mine + r * 8;
    [[maybe_unused]] const float value = most[r] + log(total[r]);
    if (in_column == 0 && i < queries) {
<store_logsumexp>
    }
  }
}
)";

constexpr std::string_view mma_backward_beginning = R"(
  const auto out_at = [&](Index i, Index d) { return static_cast<float>(<out>); };
  const auto grad_at = [&](Index i, Index d) { return <grad_out>; };
  const auto grad_number = [&](Index i, Index d) { return static_cast<float>(<grad_number>); };
  const auto logsumexp_at = [&](Index i) { return static_cast<float>(<logsumexp>); };
  const auto weight_of = [&](float score, float shift) {
    // A query that attends to no key has the logarithm -infinity.
    return isinf(shift) ? 0.0f : exp(score - shift);
  };
  // The product of a row of the result and its gradient, in four neighbouring lanes.
  const auto dot_of = [&](Index i) {
    float dot = 0;
    if (i < queries)
      for (int d = in_column; d < width; d += 4) dot = fma(grad_number(i, d), out_at(i, d), dot);
    return sum_of_row(dot);
  };
)";

constexpr std::string_view mma_query_gradient = R"(
  alignas(16) __shared__ Element ks[tile][depth + padding];
  alignas(16) __shared__ Element vs[tile][depth + padding];
  alignas(16) __shared__ Element kt[depth][tile + padding];
  unsigned q[steps][4], grad[steps][4];
  mma_take(Element{}, q, mine, queries, width, query_at);
  mma_take(Element{}, grad, mine, queries, width, grad_at);
  float result[columns][4] = {}, dot[2], shift[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    dot[r] = dot_of(mine + r * 8);
    shift[r] = mine + r * 8 < queries ? logsumexp_at(mine + r * 8) : INFINITY;
  }
  const Index end = <causal> && first + rows < keys ? first + rows : keys;
  for (Index from = 0; from < end; from += tile) {
    __syncthreads();
    mma_rows(ks, width, depth, from, keys, key_at);
    mma_rows(vs, width, depth, from, keys, value_at);
    mma_columns(kt, width, tile, from, keys, key_at);
    __syncthreads();
    float scores[tile_columns][4] = {}, slopes[tile_columns][4] = {};
    multiply(scores, q, ks);
    multiply(slopes, grad, vs);
#pragma unroll
    for (int n = 0; n < tile_columns; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const float score = masked(mine + c / 2 * 8, from + n * 8 + in_column * 2 + c % 2, scores[n][c] * scale);
        slopes[n][c] = weight_of(score, shift[c / 2]) * (slopes[n][c] - dot[c / 2]) * scale;
      }
    add_products(result, slopes, kt);
  }
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const Index i = mine + c / 2 * 8, d = n * 8 + in_column * 2 + c % 2;
      const float value = result[n][c];
      if (i < queries && d < width) {
<store_grad_query>
      }
    }
}
)";

constexpr std::string_view mma_key_gradient = R"(
  alignas(16) __shared__ Element qs[tile][depth + padding];
  alignas(16) __shared__ Element gs[tile][depth + padding];
  alignas(16) __shared__ Element qt[depth][tile + padding];
  alignas(16) __shared__ Element gt[depth][tile + padding];
  __shared__ float dots[tile], shifts[tile];
  unsigned k[steps][4], v[steps][4];
  mma_take(Element{}, k, mine, keys, width, key_at);
  mma_take(Element{}, v, mine, keys, width, value_at);
  float of_key[columns][4] = {}, of_value[columns][4] = {};
  // A causal mask leaves the keys of this block to queries from its first on.
  for (Index from = <causal> ? first : 0; from < queries; from += tile) {
    __syncthreads();
    mma_rows(qs, width, depth, from, queries, query_at);
    mma_rows(gs, width, depth, from, queries, grad_at);
    mma_columns(qt, width, tile, from, queries, query_at);
    mma_columns(gt, width, tile, from, queries, grad_at);
    const Index row = from + tid / 4;
    const float dot = dot_of(row);
    if (in_column == 0) {
      dots[tid / 4] = dot;
      shifts[tid / 4] = row < queries ? logsumexp_at(row) : INFINITY;
    }
    __syncthreads();
    float weights[tile_columns][4] = {}, slopes[tile_columns][4] = {};
    multiply(weights, k, qs);
    multiply(slopes, v, gs);
#pragma unroll
    for (int n = 0; n < tile_columns; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int query = n * 8 + in_column * 2 + c % 2;
        const float score = masked(from + query, mine + c / 2 * 8, weights[n][c] * scale);
        weights[n][c] = weight_of(score, shifts[query]);
        slopes[n][c] = weights[n][c] * (slopes[n][c] - dots[query]) * scale;
      }
    add_products(of_value, weights, gt);
    add_products(of_key, slopes, qt);
  }
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const Index i = mine + c / 2 * 8, d = n * 8 + in_column * 2 + c % 2;
      if (i < keys && d < width) {
        [[maybe_unused]] float value = of_key[n][c];
<store_grad_key>
        value = of_value[n][c];
<store_grad_value>
      }
    }
}
)";

}  // namespace

std::optional<AttentionText> tensor_attention(AttentionPart part, DType dtype, std::int64_t width) {
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  const std::int64_t mma_k = item == 2 ? 16 : 8, padding = item == 2 ? 8 : 4,
                     depth = (width + mma_k - 1) / mma_k * mma_k;
  const std::int64_t by_rows = block_tile * (depth + padding) * item,
                     by_columns = depth * (block_tile + padding) * item;
  // Registers hold what a lane has of 16 rows of the factors and of the results.
  struct Limits {
    std::int64_t shared_bytes, widest;
  };
  const Limits limits = part == AttentionPart::Forward     ? Limits{by_rows + by_columns, item == 2 ? 256 : 128}
                        : part == AttentionPart::OfQueries ? Limits{2 * by_rows + by_columns, item == 2 ? 128 : 64}
                                                           : Limits{2 * by_rows + 2 * by_columns + 8 * block_tile, 64};
  constexpr std::int64_t most_bytes = 48 * 1024;
  if (limits.shared_bytes > most_bytes || width > limits.widest) return std::nullopt;
  AttentionText text{.rows = block_rows, .bodies = {mma_text(), fragments, mma_beginning}, .words = {}};
  if (part != AttentionPart::Forward) text.bodies.push_back(mma_backward_beginning);
  text.bodies.push_back(part == AttentionPart::Forward     ? mma_forward_body
                        : part == AttentionPart::OfQueries ? mma_query_gradient
                                                           : mma_key_gradient);
  text.words = {{"mma_k", std::to_string(mma_k)}, {"padding", std::to_string(padding)}};
  return text;
}

}  // namespace partita::codegen
