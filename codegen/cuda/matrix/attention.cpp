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

/// A block's threads in all functions: `group` threads of one warp for each of `tile` rows, each with the columns
/// lane, lane + group, ...
constexpr std::string_view beginning = R"(
#ifndef PARTITA_LOAD_TILE
#define PARTITA_LOAD_TILE
// Rows from `first` on of a matrix with `rows` rows, whose elements at(row, column) gives; zeros beyond. For 256 threads.
template <class T, int tile, int pitch, class Index, class At>
__device__ void load_tile(T (&to)[tile][pitch], int width, Index first, Index rows, const At& at) {
  for (int e = static_cast<int>(threadIdx.x); e < tile * width; e += 256) {
    const Index i = first + e / width;
    to[e / width][e % width] = i < rows ? at(i, static_cast<Index>(e % width)) : T(0);
  }
}
#endif

// <what> of <origin>: <queries> queries, <keys> keys, width <width>, <batch> x <heads> heads<causal_words>.
extern "C" __global__ void __launch_bounds__(256, 1) <name>({parameters}) {
  using Index = {index};
  using Sum = <sum>;
  <fixed> Index queries = <queries>, keys = <keys>;
  constexpr int width = <width>, tile = <tile>, group = 256 / tile, padding = 1;
  constexpr int owned = (width + group - 1) / group;  // columns of a thread
  [[maybe_unused]] constexpr int scored = (tile + group - 1) / group;  // scores of a thread
  <fixed> unsigned tiles = (<count> + tile - 1) / tile, heads = <heads>;
  const Index first = static_cast<Index>(blockIdx.x % tiles) * tile;
  [[maybe_unused]] const Index h = static_cast<Index>(blockIdx.x / tiles % heads);
  [[maybe_unused]] const Index b = static_cast<Index>(blockIdx.x / tiles / heads);
  const int tid = static_cast<int>(threadIdx.x), row = tid / group, lane = tid % group;
  const Sum scale = static_cast<Sum>(<scale>);
  [[maybe_unused]] const auto sum_of_group = [&](Sum v) {
#pragma unroll
    for (int step = group / 2; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step, 32);
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
  __shared__ Sum q[tile][width + padding], k[tile][width + padding], v[tile][width + padding];
  __shared__ Sum weights[tile][tile + padding];
  Sum result[owned] = {}, most = -INFINITY, total = 0;
  const Index end = <causal> && first + tile < keys ? first + tile : keys, i = first + row;
  load_tile(q, width, first, queries, query_at);
  for (Index from = 0; from < end; from += tile) {
    __syncthreads();  // the last tile was read
    load_tile(k, width, from, keys, key_at);
    load_tile(v, width, from, keys, value_at);
    __syncthreads();
    Sum scores[scored], high = most;
#pragma unroll
    for (int e = 0; e < scored; ++e) {
      const int j = lane + e * group;
      Sum score = 0;
      if (j < tile)
        for (int d = 0; d < width; ++d) score = fma(q[row][d], k[j][d], score);
      scores[e] = j < tile ? masked(i, from + j, score * scale) : -INFINITY;
      high = Max(high, scores[e]);
    }
#pragma unroll
    for (int step = group / 2; step > 0; step /= 2) high = Max(high, __shfl_xor_sync(~0u, high, step, 32));
    // A query that has attended to no key yet has the maximum -infinity.
    const Sum shift = high == -INFINITY ? Sum(0) : high, shrink = exp(most - shift);
    most = high;
    Sum part = 0;
#pragma unroll
    for (int e = 0; e < scored; ++e) {
      const Sum weight = exp(scores[e] - shift);
      part += weight;
      if (lane + e * group < tile) weights[row][lane + e * group] = weight;
    }
    total = fma(total, shrink, sum_of_group(part));
    __syncthreads();
#pragma unroll
    for (int c = 0; c < owned; ++c) {
      const int d = lane + c * group;
      Sum sum = 0;
      if (d < width)
        for (int j = 0; j < tile; ++j) sum = fma(weights[row][j], v[j][d], sum);
      result[c] = fma(result[c], shrink, sum);
    }
  }
  if (i >= queries) return;
  const Sum factor = total == 0 ? Sum(1) : 1 / total;
#pragma unroll
  for (int c = 0; c < owned; ++c) {
    [[maybe_unused]] const Index d = lane + c * group;
    [[maybe_unused]] const Sum value = result[c] * factor;
    if (d < width) {
<store_out>
    }
  }
  if (lane == 0) {
    [[maybe_unused]] const Sum value = most + log(total);
<store_logsumexp>
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
      for (int d = lane; d < width; d += group) dot = fma(grad_at(i, d), out_at(i, d), dot);
    return sum_of_group(dot);
  };
  __shared__ Sum q[tile][width + padding], k[tile][width + padding], v[tile][width + padding];
  __shared__ Sum grad[tile][width + padding];
)";

constexpr std::string_view query_gradient = R"(
  __shared__ Sum slopes[tile][tile + padding];
  const Index end = <causal> && first + tile < keys ? first + tile : keys, i = first + row;
  load_tile(q, width, first, queries, query_at);
  load_tile(grad, width, first, queries, grad_at);
  const Sum dot = dot_of(i), shift = i < queries ? logsumexp_at(i) : INFINITY;
  Sum result[owned] = {};
  for (Index from = 0; from < end; from += tile) {
    __syncthreads();
    load_tile(k, width, from, keys, key_at);
    load_tile(v, width, from, keys, value_at);
    __syncthreads();
    for (int j = lane; j < tile; j += group) {
      Sum score = 0, slope = 0;
      for (int d = 0; d < width; ++d) {
        score = fma(q[row][d], k[j][d], score);
        slope = fma(grad[row][d], v[j][d], slope);
      }
      slopes[row][j] = weight_of(masked(i, from + j, score * scale), shift) * (slope - dot) * scale;
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < owned; ++c) {
      const int d = lane + c * group;
      Sum sum = 0;
      if (d < width)
        for (int j = 0; j < tile; ++j) sum = fma(slopes[row][j], k[j][d], sum);
      result[c] += sum;
    }
  }
  if (i >= queries) return;
#pragma unroll
  for (int c = 0; c < owned; ++c) {
    const Index d = lane + c * group;
    const Sum value = result[c];
    if (d < width) {
<store_grad_query>
    }
  }
}
)";

constexpr std::string_view key_gradient = R"(
  __shared__ Sum slopes[tile][tile + padding], weights[tile][tile + padding];
  __shared__ Sum dots[tile], shifts[tile];
  load_tile(k, width, first, keys, key_at);
  load_tile(v, width, first, keys, value_at);
  Sum of_key[owned] = {}, of_value[owned] = {};
  // A causal mask leaves the keys of this tile to queries from its first on.
  for (Index from = <causal> ? first : 0; from < queries; from += tile) {
    __syncthreads();
    load_tile(q, width, from, queries, query_at);
    load_tile(grad, width, from, queries, grad_at);
    const Sum dot = dot_of(from + row);
    if (lane == 0) {
      dots[row] = dot;
      shifts[row] = from + row < queries ? logsumexp_at(from + row) : INFINITY;
    }
    __syncthreads();
    for (int j = lane; j < tile; j += group) {  // queries
      Sum score = 0, slope = 0;
      for (int d = 0; d < width; ++d) {
        score = fma(q[j][d], k[row][d], score);
        slope = fma(grad[j][d], v[row][d], slope);
      }
      const Sum weight = weight_of(masked(from + j, first + row, score * scale), shifts[j]);
      weights[row][j] = weight;
      slopes[row][j] = weight * (slope - dots[j]) * scale;
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < owned; ++c) {
      const int d = lane + c * group;
      Sum key_sum = 0, value_sum = 0;
      if (d < width)
        for (int j = 0; j < tile; ++j) {
          key_sum = fma(slopes[row][j], q[j][d], key_sum);
          value_sum = fma(weights[row][j], grad[j][d], value_sum);
        }
      of_key[c] += key_sum;
      of_value[c] += value_sum;
    }
  }
  const Index i = first + row;
  if (i >= keys) return;
#pragma unroll
  for (int c = 0; c < owned; ++c) {
    const Index d = lane + c * group;
    if (d < width) {
      [[maybe_unused]] Sum value = of_key[c];
<store_grad_key>
      value = of_value[c];
<store_grad_value>
    }
  }
}
)";

/// By fma, in the dtype or in single precision.
AttentionText scalar_attention(AttentionPart part, int tile) {
  AttentionText text{.rows = tile, .threads = 256, .bodies = {beginning}, .words = {}};
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

/// The mask with the sizes that the scores have; nullopt when it does not broadcast to them.
std::optional<schedule::PlanView> broadcast(schedule::PlanView view, const SymList& sizes) {
  if (view.sizes.size() > sizes.size()) return std::nullopt;
  const std::size_t missing = sizes.size() - view.sizes.size();
  view.sizes.insert(view.sizes.begin(), missing, 1);
  view.strides.insert(view.strides.begin(), missing, 0);
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (view.sizes[d] != sizes[d] && !view.sizes[d].is(1)) return std::nullopt;
  return view;
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
  const bool fits = query->sizes.size() == 4 && key->sizes.size() == 4 && value->sizes == key->sizes &&
                    key->sizes[0] == query->sizes[0] && key->sizes[1] == query->sizes[1] &&
                    key->sizes[3] == query->sizes[3] && query->sizes[3].is_int() && !query->sizes[3].is(0);
  if (!fits) return refuse("sizes of query, key and value that do not fit together");
  for (const auto& v : {query, key, value})
    if (!is_floating(v->dtype) || sum_type(v->dtype).empty()) return refuse("a dtype that attention does not take");
  const SymExpr batch = query->sizes[0], heads = query->sizes[1], queries = query->sizes[2], keys = key->sizes[2];
  const std::int64_t width = query->sizes[3].as_int();
  const bool in_double = query->dtype == DType::Float64;
  int tile = 32;
  constexpr std::int64_t most_bytes = 44 * 1024;  // of shared memory that a kernel gets without asking
  const auto bytes = [&] { return (4 * (width + 1) + 2 * (tile + 1)) * tile * (in_double ? 8 : 4); };
  while (tile > 8 && bytes() > most_bytes) tile /= 2;
  if (bytes() > most_bytes) return refuse("rows too wide for shared memory");

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
                        {"tile", std::to_string(tile)},
                        {"sum", in_double ? "double" : "float"},
                        {"element", std::string(cuda_memory_type(query->dtype))},
                        {"causal", *causal != 0 ? "true" : "false"},
                        {"causal_words", *causal != 0 ? ", causal" : ""},
                        {"scale", fmt::format("{:a}", scale ? *scale : 1 / std::sqrt(static_cast<double>(width)))}};
  std::string masked = "score";
  if (!std::holds_alternative<Arg>(context.arg(options + 2))) {
    auto mask = tensor_view(context, options + 2);
    if (mask) mask = broadcast(*mask, {batch, heads, queries, keys});
    const bool known =
        mask && (mask->dtype == DType::Bool || (is_floating(mask->dtype) && !sum_type(mask->dtype).empty()));
    if (!known) return refuse("a mask of another dtype or size");
    const std::vector<std::string> at_score = {"b", "h", "i", "j"};
    masked = fmt::format("score + static_cast<Sum>({})", mask->dtype == DType::Bool
                                                             ? builder.element(*mask, at_score) + " != 0"
                                                             : builder.number(*mask, at_score));
  }
  words.emplace_back("masked", masked);
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
    if (!by) by = scalar_attention(part, tile);
    const SymExpr blocks = sym_floordiv(count + (by->rows - 1), by->rows) * batch * heads;
    own.insert(own.end(), by->words.begin(), by->words.end());
    own.emplace_back("what", what);
    own.emplace_back("name", names.symbol + suffix);
    own.emplace_back("count", builder.text(count));
    std::string text;
    for (std::string_view body : by->bodies) text += filled(body, own);
    if (blocks.is(0)) return;
    const double scores =
        static_cast<double>(builder.hint(batch * heads * queries)) * static_cast<double>(builder.hint(keys));
    builder.add({.suffix = suffix,
                 .text = std::move(text),
                 .blocks = blocks,
                 .threads = by->threads,
                 .operations = 4.0 * scores * static_cast<double>(width)});
  };
  if (!backward) {
    store("store_out", 0, at);
    store("store_logsumexp", 1, at_row);
    add(AttentionPart::Forward, "_forward", "attention", queries);
    return builder.build(why_not);
  }
  const auto grad_out = tensor_view(context, 0), out = tensor_view(context, 4), logsumexp = tensor_view(context, 5);
  if (!grad_out || !out || !logsumexp) return refuse("symbolic numbers");
  if (grad_out->sizes != query->sizes || out->sizes != query->sizes || logsumexp->sizes.size() != 3)
    return refuse("sizes of gradients that do not fit those of query");
  for (const auto& v : {grad_out, out, logsumexp})
    if (!is_floating(v->dtype) || sum_type(v->dtype).empty()) return refuse("a dtype that attention does not take");
  factors.emplace_back("grad_out", *grad_out);
  words.emplace_back("out", builder.number(*out, at));
  words.emplace_back("grad_number", builder.number(*grad_out, at));
  words.emplace_back("logsumexp", builder.number(*logsumexp, at_row));
  const bool wants_query = store("store_grad_query", 0, at), wants_key = store("store_grad_key", 1, at),
             wants_value = store("store_grad_value", 2, at);
  if (wants_query) add(AttentionPart::OfQueries, "_query", "gradient of attention's queries", queries);
  if (wants_key || wants_value) add(AttentionPart::OfKeys, "_key", "gradients of attention's keys and values", keys);
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
