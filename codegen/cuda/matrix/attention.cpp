// Attention by tiles of queries and keys: scores never leave the multiprocessor. The forward keeps a running maximum
// and sum of each row (online softmax). The backward computes weights again from the logarithms that the forward kept,
// once for tiles of queries and once for tiles of keys, so that no two blocks add to the same element.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "codegen/cuda/emit_text.h"
#include "codegen/cuda/matrix/attention_tensor.h"
#include "codegen/cuda/matrix/contraction.h"
#include "codegen/cuda/matrix/products.h"

namespace partita::codegen {
namespace {

/// A block's threads in all functions: sixteen, half a warp, for `each` of the `rows` rows. Of the other side's `tile`
/// rows a thread has those from lane on in steps of 16, and of the width groups of four columns.
constexpr std::string_view beginning = R"(
#ifndef PARTITA_ATTENTION_TILES
#define PARTITA_ATTENTION_TILES
// Numbers that are read at once.
template <class T>
struct alignas(16) Four {
  T of[4];
};
template <class T>
__device__ const Four<T>& four(const T* at) {
  return *reinterpret_cast<const Four<T>*>(at);
}
// Rows from `first` on of a matrix of `size` rows and `width` columns, whose elements at(row, column) gives; zeros
// beyond. For 128 threads.
template <int depth, class T, int tile, int pitch, class Index, class At>
__device__ void load_tile(T (&to)[tile][pitch], int width, Index first, Index size, const At& at) {
#pragma unroll 8
  for (int e = static_cast<int>(threadIdx.x); e < tile * depth; e += 128) {
    const Index i = first + e / depth;
    to[e / depth][e % depth] = i < size && e % depth < width ? at(i, static_cast<Index>(e % depth)) : T(0);
  }
}
// Adds the products of the rows a, a + pitch, ... and every sixteenth row from b on.
template <int depth, int pitch, class T, int n, int m>
__device__ void add_products(T (&sums)[n][m], const T* a, const T* b) {
#pragma unroll 4
  for (int d = 0; d < depth; d += 4) {
    Four<T> left[n];
#pragma unroll
    for (int r = 0; r < n; ++r) left[r] = four(a + r * pitch + d);
#pragma unroll
    for (int e = 0; e < m; ++e) {
      const Four<T> right = four(b + e * 16 * pitch + d);
#pragma unroll
      for (int r = 0; r < n; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[r][e] = fma(left[r].of[i], right.of[i], sums[r][e]);
    }
  }
}
// Adds the rows of b, each times its weight, of which a row of `weights` has `tile`. The thread has the columns from
// `column` on, four of each 64.
template <int depth, int pitch, int tile, int weights_pitch, class T, int n, int m>
__device__ void add_rows(Four<T> (&sums)[n][m], const T* weights, const T* b, int column) {
  for (int j = 0; j < tile; j += 4) {
    Four<T> weight[n];
#pragma unroll
    for (int r = 0; r < n; ++r) weight[r] = four(weights + r * weights_pitch + j);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int c = 0; c < m; ++c) {
        if (column + c * 64 >= depth) continue;
        const Four<T> right = four(b + (j + i) * pitch + column + c * 64);
#pragma unroll
        for (int r = 0; r < n; ++r)
#pragma unroll
          for (int x = 0; x < 4; ++x) sums[r][c].of[x] = fma(weight[r].of[i], right.of[x], sums[r][c].of[x]);
      }
  }
}
#endif

// <what> of <origin>: <queries> queries, <keys> keys, width <width>, <batch> x <heads> heads<causal_words>.
extern "C" __global__ void __launch_bounds__(128, 1) <name>({parameters}) {
  using Index = {index};
  using Sum = <sum>;
  <fixed> Index queries = <queries>, keys = <keys>;
  constexpr int width = <width>, rows = <rows>, tile = <tile>, each = rows / 8;
  constexpr int depth = (width + 3) / 4 * 4;            // the width with zeros behind it
  constexpr int pitch = depth + (depth % 8 ? 0 : 4);    // so that eight rows begin at eight places in the banks
  constexpr int parts = (depth + 63) / 64, scored = (tile + 15) / 16, weights_pitch = tile + 4;
  <fixed> unsigned tiles = (<count> + rows - 1) / rows, heads = <heads>;
  const Index first = static_cast<Index>(blockIdx.x % tiles) * rows;
  [[maybe_unused]] const Index h = static_cast<Index>(blockIdx.x / tiles % heads);
  [[maybe_unused]] const Index b = static_cast<Index>(blockIdx.x / tiles / heads);
  const int lane = static_cast<int>(threadIdx.x) % 16, group = static_cast<int>(threadIdx.x) / 16, mine = group * each;
  const Sum scale = static_cast<Sum>(<scale>);
  [[maybe_unused]] const auto sum_of_group = [&](Sum v) {
#pragma unroll
    for (int step = 8; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step, 32);
    return v;
  };
  // The mask's term of a score. What lies beyond, and with a causal mask what comes after the query, has no weight.
  const auto masked = [&](Index i, Index j, Sum score) -> Sum {
    if (i >= queries || j >= keys || (<causal> && j > i)) return -INFINITY;
    return <masked>;
  };
  [[maybe_unused]] const auto query_at = [&](Index i, Index d) { return static_cast<Sum>(<query>); };
  [[maybe_unused]] const auto key_at = [&](Index i, Index d) { return static_cast<Sum>(<key>); };
  [[maybe_unused]] const auto value_at = [&](Index i, Index d) { return static_cast<Sum>(<value>); };
)";

constexpr std::string_view forward_body = R"(
  alignas(16) __shared__ Sum q[rows][pitch], k[tile][pitch], v[tile][pitch], weights[rows][weights_pitch];
  Four<Sum> result[each][parts] = {};
  Sum most[each], total[each];
#pragma unroll
  for (int r = 0; r < each; ++r) most[r] = -INFINITY, total[r] = 0;
  const Index end = <causal> && first + rows < keys ? first + rows : keys;
  load_tile<depth>(q, width, first, queries, query_at);
  for (Index from = 0; from < end; from += tile) {
    __syncthreads();  // the last tile was read
    load_tile<depth>(k, width, from, keys, key_at);
    load_tile<depth>(v, width, from, keys, value_at);
    __syncthreads();
    Sum scores[each][scored] = {};
    add_products<depth, pitch>(scores, q[mine], k[lane % tile]);
#pragma unroll
    for (int r = 0; r < each; ++r) {
      Sum high = most[r];
#pragma unroll
      for (int e = 0; e < scored; ++e) {
        const int j = lane + e * 16;
        scores[r][e] = j < tile ? masked(first + mine + r, from + j, scores[r][e] * scale) : -INFINITY;
        high = Max(high, scores[r][e]);
      }
#pragma unroll
      for (int step = 8; step > 0; step /= 2) high = Max(high, __shfl_xor_sync(~0u, high, step, 32));
      // A query that has attended to no key yet has the maximum -infinity.
      const Sum shift = high == -INFINITY ? Sum(0) : high, shrink = exp(most[r] - shift);
      most[r] = high;
      Sum part = 0;
#pragma unroll
      for (int e = 0; e < scored; ++e) {
        const Sum weight = exp(scores[r][e] - shift);
        part += weight;
        if (lane + e * 16 < tile) weights[mine + r][lane + e * 16] = weight;
      }
      total[r] = fma(total[r], shrink, sum_of_group(part));
#pragma unroll
      for (int c = 0; c < parts; ++c)
#pragma unroll
        for (int x = 0; x < 4; ++x) result[r][c].of[x] *= shrink;
    }
    __syncwarp();
    add_rows<depth, pitch, tile, weights_pitch>(result, weights[mine], v[0], lane * 4);
  }
#pragma unroll
  for (int r = 0; r < each; ++r) {
    const Index i = first + mine + r;
    if (i >= queries) return;
    const Sum factor = total[r] == 0 ? Sum(1) : 1 / total[r];
#pragma unroll
    for (int c = 0; c < parts; ++c)
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        [[maybe_unused]] const Index d = lane * 4 + c * 64 + x;
        [[maybe_unused]] const Sum value = result[r][c].of[x] * factor;
        if (d < width) {
<store_out>
        }
      }
    if (lane == 0) {
      [[maybe_unused]] const Sum value = most[r] + log(total[r]);
<store_logsumexp>
    }
  }
}
)";

/// What both functions of the backward know.
constexpr std::string_view backward_beginning = R"(
  [[maybe_unused]] const auto out_at = [&](Index i, Index d) { return static_cast<Sum>(<out>); };
  const auto grad_at = [&](Index i, Index d) { return static_cast<Sum>(<grad_out>); };
  const auto logsumexp_at = [&](Index i) { return static_cast<Sum>(<logsumexp>); };
  const auto weight_of = [&](Sum score, Sum shift) {
    // A query that attends to no key has the logarithm -infinity.
    return isinf(shift) ? Sum(0) : exp(score - shift);
  };
  // The product of a row of the result and its gradient, in all threads of the row's group.
  const auto dot_of = [&](Index i) {
    Sum dot = 0;
    if (i < queries)
      for (int d = lane; d < width; d += 16) dot = fma(grad_at(i, d), out_at(i, d), dot);
    return sum_of_group(dot);
  };
)";

constexpr std::string_view query_gradient = R"(
  alignas(16) __shared__ Sum q[rows][pitch], grad[rows][pitch], k[tile][pitch], v[tile][pitch];
  alignas(16) __shared__ Sum slopes[rows][weights_pitch];
  const Index end = <causal> && first + rows < keys ? first + rows : keys;
  load_tile<depth>(q, width, first, queries, query_at);
  load_tile<depth>(grad, width, first, queries, grad_at);
  Sum dots[each], shifts[each];
#pragma unroll
  for (int r = 0; r < each; ++r) {
    const Index i = first + mine + r;
    dots[r] = dot_of(i);
    shifts[r] = i < queries ? logsumexp_at(i) : INFINITY;
  }
  Four<Sum> result[each][parts] = {};
  for (Index from = 0; from < end; from += tile) {
    __syncthreads();
    load_tile<depth>(k, width, from, keys, key_at);
    load_tile<depth>(v, width, from, keys, value_at);
    __syncthreads();
    Sum scores[each][scored] = {}, products[each][scored] = {};
    add_products<depth, pitch>(scores, q[mine], k[lane % tile]);
    add_products<depth, pitch>(products, grad[mine], v[lane % tile]);
#pragma unroll
    for (int r = 0; r < each; ++r)
#pragma unroll
      for (int e = 0; e < scored; ++e) {
        const int j = lane + e * 16;
        if (j >= tile) continue;
        const Sum weight = weight_of(masked(first + mine + r, from + j, scores[r][e] * scale), shifts[r]);
        slopes[mine + r][j] = weight * (products[r][e] - dots[r]) * scale;
      }
    __syncwarp();
    add_rows<depth, pitch, tile, weights_pitch>(result, slopes[mine], k[0], lane * 4);
  }
#pragma unroll
  for (int r = 0; r < each; ++r) {
    const Index i = first + mine + r;
    if (i >= queries) return;
#pragma unroll
    for (int c = 0; c < parts; ++c)
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const Index d = lane * 4 + c * 64 + x;
        const Sum value = result[r][c].of[x];
        if (d < width) {
<store_grad_query>
        }
      }
  }
}
)";

constexpr std::string_view key_gradient = R"(
  alignas(16) __shared__ Sum k[rows][pitch], v[rows][pitch], q[tile][pitch], grad[tile][pitch];
  alignas(16) __shared__ Sum slopes[rows][weights_pitch], weights[rows][weights_pitch];
  __shared__ Sum dots[tile], shifts[tile];
  load_tile<depth>(k, width, first, keys, key_at);
  load_tile<depth>(v, width, first, keys, value_at);
  Four<Sum> of_key[each][parts] = {}, of_value[each][parts] = {};
  // A causal mask leaves the keys of this tile to queries from its first on.
  for (Index from = <causal> ? first : 0; from < queries; from += tile) {
    __syncthreads();
    load_tile<depth>(q, width, from, queries, query_at);
    load_tile<depth>(grad, width, from, queries, grad_at);
    for (int j = group; j < tile; j += 8) {
      const Sum dot = dot_of(from + j);
      if (lane == 0) {
        dots[j] = dot;
        shifts[j] = from + j < queries ? logsumexp_at(from + j) : INFINITY;
      }
    }
    __syncthreads();
    Sum scores[each][scored] = {}, products[each][scored] = {};
    add_products<depth, pitch>(scores, k[mine], q[lane % tile]);
    add_products<depth, pitch>(products, v[mine], grad[lane % tile]);
#pragma unroll
    for (int r = 0; r < each; ++r)
#pragma unroll
      for (int e = 0; e < scored; ++e) {
        const int j = lane + e * 16;  // a query
        if (j >= tile) continue;
        const Sum weight = weight_of(masked(from + j, first + mine + r, scores[r][e] * scale), shifts[j]);
        weights[mine + r][j] = weight;
        slopes[mine + r][j] = weight * (products[r][e] - dots[j]) * scale;
      }
    __syncwarp();
    add_rows<depth, pitch, tile, weights_pitch>(of_key, slopes[mine], q[0], lane * 4);
    add_rows<depth, pitch, tile, weights_pitch>(of_value, weights[mine], grad[0], lane * 4);
  }
#pragma unroll
  for (int r = 0; r < each; ++r) {
    const Index i = first + mine + r;
    if (i >= keys) return;
#pragma unroll
    for (int c = 0; c < parts; ++c)
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const Index d = lane * 4 + c * 64 + x;
        if (d < width) {
          [[maybe_unused]] Sum value = of_key[r][c].of[x];
<store_grad_key>
          value = of_value[r][c].of[x];
<store_grad_value>
        }
      }
  }
}
)";

/// By fma, in the dtype or in single precision; nullopt where rows of this width need more shared memory than a kernel
/// gets without asking. `blocks`: how many there would be with 32 rows each.
std::optional<AttentionText> scalar_attention(AttentionPart part, std::int64_t width, std::int64_t size,
                                              std::int64_t blocks) {
  constexpr std::int64_t most_bytes = 48 * 1024, few_blocks = 256;
  const std::int64_t depth = (width + 3) / 4 * 4, pitch = depth + (depth % 8 ? 0 : 4);
  const auto bytes = [&](std::int64_t rows, std::int64_t tile) {
    const std::int64_t own = part == AttentionPart::Forward ? 1 : 2, weights = part == AttentionPart::OfKeys ? 2 : 1;
    const std::int64_t numbers = part == AttentionPart::OfKeys ? 2 * tile : 0;
    return ((own * rows + 2 * tile) * pitch + weights * rows * (tile + 4) + numbers) * size;
  };
  // More rows need fewer reads for each product. Where they leave multiprocessors without work, a block has fewer, and
  // waits less often for the other side.
  constexpr std::pair<int, int> choices[] = {{16, 64}, {32, 32}, {32, 16}, {16, 32}, {16, 16}, {8, 16}, {8, 8}};
  const auto fits = [&](auto choice) {
    if (choice.second == 64 && blocks >= few_blocks) return false;
    if (choice.first * choice.second > 512 && size == 8) return false;  // more registers than there are
    return bytes(choice.first, choice.second) <= most_bytes;
  };
  const auto chosen = std::ranges::find_if(choices, fits);
  if (chosen == std::end(choices)) return std::nullopt;
  const auto [rows, tile] = *chosen;
  AttentionText text{
      .rows = rows, .bodies = {beginning}, .words = {{"rows", std::to_string(rows)}, {"tile", std::to_string(tile)}}};
  if (part != AttentionPart::Forward) text.bodies.push_back(backward_beginning);
  text.bodies.push_back(part == AttentionPart::Forward     ? forward_body
                        : part == AttentionPart::OfQueries ? query_gradient
                                                           : key_gradient);
  return text;
}

std::optional<schedule::PlanView> result(const ExternContext& context, std::size_t i) {
  if (i >= context.call.results.size() || context.call.results[i].buffer < 0) return std::nullopt;
  return context.call.results[i];
}

bool has_sum_type(const schedule::PlanView& v) {
  return is_floating(v.dtype) && !sum_type(v.dtype).empty();
}

/// Why there is no kernel for them; null: there is one.
const char* misfit(const schedule::PlanView& query, const schedule::PlanView& key, const schedule::PlanView& value) {
  const bool fits = query.sizes.size() == 4 && key.sizes.size() == 4 && value.sizes == key.sizes &&
                    key.sizes[0] == query.sizes[0] && key.sizes[1] == query.sizes[1] &&
                    key.sizes[3] == query.sizes[3] && query.sizes[3].is_int() && !query.sizes[3].is(0);
  if (!fits) return "sizes of query, key and value that do not fit together";
  const bool known = has_sum_type(query) && has_sum_type(key) && has_sum_type(value);
  return known ? nullptr : "a dtype that attention does not take";
}

/// The score with the mask that the call has in its argument `at`; unset: a mask that the kernel does not take.
std::optional<std::string> masked_score(const ExternContext& context, MatrixKernelBuilder& builder, std::size_t at,
                                        const SymList& scores) {
  if (std::holds_alternative<Arg>(context.arg(at))) return "score";
  auto mask = tensor_view(context, at);
  if (mask) mask = broadcast(*mask, scores);
  if (!mask || (mask->dtype != DType::Bool && !has_sum_type(*mask))) return std::nullopt;
  const std::vector<std::string> indices = {"b", "h", "i", "j"};
  return fmt::format("score + static_cast<Sum>({})", mask->dtype == DType::Bool
                                                         ? builder.element(*mask, indices) + " != 0"
                                                         : builder.number(*mask, indices));
}

/// The arguments begin with query at `first`; dropout_p follows them at `options`.
std::optional<MatrixKernel> attention(const ExternContext& context, const MatrixNames& names, std::size_t first,
                                      std::size_t options, bool backward, std::string& why_not) {
  const auto refuse = [&](const char* why) {
    why_not = why;
    return std::nullopt;
  };
  const auto query = tensor_view(context, first), key = tensor_view(context, first + 1),
             value = tensor_view(context, first + 2);
  const auto dropout = context.number(options), causal = context.number(options + 1);
  if (!query || !key || !value || !dropout || !causal) return refuse("symbolic numbers");
  if (*dropout != 0) return refuse("dropout");
  if (const char* why = misfit(*query, *key, *value)) return refuse(why);
  const SymExpr batch = query->sizes[0], heads = query->sizes[1], queries = query->sizes[2], keys = key->sizes[2];
  const std::int64_t width = query->sizes[3].as_int();
  const bool in_double = query->dtype == DType::Float64;
  MatrixKernelBuilder builder(context, names);
  const auto scale = context.number(options + 3);
  const std::vector<std::string> at = {"b", "h", "i", "d"}, at_row = {"b", "h", "i"};
  PatternWords words = {{"origin", context.call.origin},
                        {"fixed", std::string(builder.fixed())},
                        {"queries", builder.text(queries)},
                        {"keys", builder.text(keys)},
                        {"width", std::to_string(width)},
                        {"batch", builder.text(batch)},
                        {"heads", heads.is(0) ? "1" : builder.text(heads)},
                        {"sum", in_double ? "double" : "float"},
                        {"element", std::string(cuda_memory_type(query->dtype))},
                        {"causal", *causal != 0 ? "true" : "false"},
                        {"causal_words", *causal != 0 ? ", causal" : ""},
                        {"scale", fmt::format("{:a}", scale ? *scale : 1 / std::sqrt(static_cast<double>(width)))}};
  const auto masked = masked_score(context, builder, options + 2, {batch, heads, queries, keys});
  if (!masked) return refuse("a mask of another dtype or size");
  words.emplace_back("masked", *masked);
  const auto store = [&](std::string_view word, std::size_t i, const std::vector<std::string>& indices) {
    const auto view = result(context, i);
    words.emplace_back(word, view ? builder.store(*view, indices, "value") : std::string());
    return view.has_value();
  };
  std::vector<std::pair<std::string_view, schedule::PlanView>> factors = {
      {"query", *query}, {"key", *key}, {"value", *value}};
  const auto add = [&](AttentionPart part, const char* suffix, const char* what, SymExpr count) {
    const bool one_dtype = std::ranges::all_of(factors, [&](const auto& f) { return f.second.dtype == query->dtype; });
    const bool tensor = one_dtype && matrix_unit(query->dtype) == MatrixUnit::Tensor;
    std::optional<AttentionText> by = tensor ? tensor_attention(part, query->dtype, width) : std::nullopt;
    PatternWords own = words;
    for (const auto& [word, view] : factors)
      own.emplace_back(word, by ? builder.element(view, at) : builder.number(view, at));
    if (!by)
      by = scalar_attention(part, width, in_double ? 8 : 4, builder.hint(sym_floordiv(count + 31, 32) * batch * heads));
    if (!by) return false;
    const SymExpr blocks = sym_floordiv(count + (by->rows - 1), by->rows) * batch * heads;
    own.insert(own.end(), by->words.begin(), by->words.end());
    own.emplace_back("what", what);
    own.emplace_back("name", names.symbol + suffix);
    own.emplace_back("count", builder.text(count));
    std::string text;
    for (std::string_view body : by->bodies) text += filled(body, own);
    if (blocks.is(0)) return true;
    const double scores =
        static_cast<double>(builder.hint(batch * heads * queries)) * static_cast<double>(builder.hint(keys));
    builder.add({.suffix = suffix,
                 .text = std::move(text),
                 .blocks = blocks,
                 .threads = 128,
                 .operations = 4.0 * scores * static_cast<double>(width)});
    return true;
  };
  constexpr const char* too_wide = "rows too wide for shared memory";
  if (!backward) {
    store("store_out", 0, at);
    store("store_logsumexp", 1, at_row);
    if (!add(AttentionPart::Forward, "_forward", "attention", queries)) return refuse(too_wide);
    return builder.build(why_not);
  }
  const auto grad_out = tensor_view(context, 0), out = tensor_view(context, 4), logsumexp = tensor_view(context, 5);
  if (!grad_out || !out || !logsumexp) return refuse("symbolic numbers");
  if (grad_out->sizes != query->sizes || out->sizes != query->sizes || logsumexp->sizes.size() != 3)
    return refuse("sizes of gradients that do not fit those of query");
  if (!has_sum_type(*grad_out) || !has_sum_type(*out) || !has_sum_type(*logsumexp))
    return refuse("a dtype that attention does not take");
  factors.emplace_back("grad_out", *grad_out);
  words.emplace_back("out", builder.number(*out, at));
  words.emplace_back("grad_number", builder.number(*grad_out, at));
  words.emplace_back("logsumexp", builder.number(*logsumexp, at_row));
  const bool wants_query = store("store_grad_query", 0, at), wants_key = store("store_grad_key", 1, at),
             wants_value = store("store_grad_value", 2, at);
  if (wants_query && !add(AttentionPart::OfQueries, "_query", "gradient of attention's queries", queries))
    return refuse(too_wide);
  if ((wants_key || wants_value) &&
      !add(AttentionPart::OfKeys, "_key", "gradients of attention's keys and values", keys))
    return refuse(too_wide);
  return builder.build(why_not);
}

}  // namespace

std::optional<MatrixKernel> attention_kernel(const ExternContext& context, const MatrixNames& names,
                                             std::string& why_not) {
  return attention(context, names, 0, 3, false, why_not);
}

std::optional<MatrixKernel> attention_backward_kernel(const ExternContext& context, const MatrixNames& names,
                                                      std::string& why_not) {
  return attention(context, names, 1, 6, true, why_not);
}

}  // namespace partita::codegen
