// scaled_dot_product_attention: the CPU's flash attention operator with its gradient, and the composite that chooses
// between it and plain matrix products.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/facts/operations.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/in_parts.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

/// The meta of a [b, h, s, d] tensor whose memory has the order [b, s, h, d].
TensorMeta heads_inside(const TensorMeta& like) {
  TensorMeta meta = new_like(like, like.sizes);
  const SymList& s = meta.sizes;
  meta.strides = {s[1] * s[2] * s[3], s[3], s[1] * s[3], 1};
  return meta;
}

void check_operands(FakeCall& c) {
  const DType dtype = c.tensor("query").dtype;
  if (!is_floating(dtype)) fail("\"flash_attention\" not implemented for '" + std::string(torch_name(dtype)) + "'");
  for (const char* name : {"query", "key", "value"}) {
    if (c.tensor(name).dim() != 4)
      fail("Expected query, key, value to be 4-dimensional [batch, heads, sequence, head size]");
    if (c.tensor(name).dtype != dtype) fail("Expected query, key, and value to have the same dtype");
  }
}

Meta fake_flash(FakeCall& c) {
  check_operands(c);
  const TensorMeta& q = c.tensor("query");
  SymExpr b = q.sizes[0], h = q.sizes[1], s = q.sizes[2];
  TensorMeta logsumexp = new_like(q, {b, h, s});
  logsumexp.strides = {h * s, 1, h};
  if (q.dtype != DType::Float64) logsumexp.dtype = DType::Float32;
  return MetaTuple{{like_preserving(q, c.shapes), logsumexp}};
}

Meta fake_flash_backward(FakeCall& c) {
  check_operands(c);
  return MetaTuple{{heads_inside(c.tensor("query")), heads_inside(c.tensor("key")), heads_inside(c.tensor("value"))}};
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The operands of one call, row-major and in double.
struct Problem {
  Tensor q, k, v, mask;
  std::int64_t batch, heads, queries, keys, width;
  double scale;
  bool causal;

  explicit Problem(const EvalCall& c) {
    q = load(c.tensor("query"), DType::Float64);
    k = load(c.tensor("key"), DType::Float64);
    v = load(c.tensor("value"), DType::Float64);
    batch = q.sizes[0], heads = q.sizes[1], queries = q.sizes[2], width = q.sizes[3], keys = k.sizes[2];
    bool fits = k.sizes[3] == width && v.sizes[3] == width && v.sizes[2] == keys;
    for (const Tensor* t : {&k, &v}) fits = fits && t->sizes[0] == batch && t->sizes[1] == heads;
    if (!fits) fail("scaled_dot_product_attention: the sizes of query, key and value do not fit together");
    if (as_double(c.number("dropout_p")) != 0) fail_unsupported("flash attention with dropout on the CPU");
    scale = c.has("scale") ? as_double(c.number("scale")) : 1 / std::sqrt(static_cast<double>(width));
    causal = c.boolean("is_causal");
    if (c.has("attn_mask")) mask = expand_load(c.tensor("attn_mask"), {batch, heads, queries, keys}, DType::Float64);
  }

  /// scores[queries, keys] = scale * q k^T + mask of one (batch, head)
  void scores(std::int64_t i, double* out) const {
    gemm<double>(queries, keys, width, {q.as<double>() + i * queries * width, width, 1},
                 {k.as<double>() + i * keys * width, 1, width}, out, keys);
    const double* m = mask.storage ? mask.as<double>() + i * queries * keys : nullptr;
    for (std::int64_t r = 0; r < queries; ++r)
      for (std::int64_t j = 0; j < keys; ++j) {
        double& s = out[r * keys + j];
        s = s * scale + (m ? m[r * keys + j] : 0);
        if (causal && j > r) s = -infinity;
      }
  }
};

Value eval_flash(EvalCall& c) {
  Problem p(c);
  Tensor out = empty(DType::Float64, p.q.sizes), logsumexp = empty(DType::Float64, {p.batch, p.heads, p.queries});
  in_parts(c.context, p.batch * p.heads, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> scores(static_cast<std::size_t>(p.queries * p.keys));
    for (std::int64_t i = first; i < last; ++i) {
      p.scores(i, scores.data());
      for (std::int64_t r = 0; r < p.queries; ++r) {
        double* row = scores.data() + r * p.keys;
        const double high = p.keys ? *std::max_element(row, row + p.keys) : -infinity;
        // A query that may attend to no key gives a row of zeros.
        const bool empty_row = high == -infinity;
        double sum = 0;
        for (std::int64_t j = 0; j < p.keys; ++j) sum += row[j] = empty_row ? 0 : std::exp(row[j] - high);
        for (std::int64_t j = 0; j < p.keys && !empty_row; ++j) row[j] /= sum;
        logsumexp.as<double>()[i * p.queries + r] = high + std::log(sum);
      }
      gemm<double>(p.queries, p.width, p.keys, {scores.data(), p.keys, 1},
                   {p.v.as<double>() + i * p.keys * p.width, p.width, 1}, out.as<double>() + i * p.queries * p.width,
                   p.width);
    }
  });
  return ValueList{out, logsumexp};
}

Value eval_flash_backward(EvalCall& c) {
  Problem p(c);
  constexpr DType dtype = DType::Float64;
  Tensor grad = load(c.tensor("grad_out"), dtype), out = load(c.tensor("out"), dtype),
         lse = load(c.tensor("logsumexp"), dtype);
  if (grad.sizes != p.q.sizes || out.sizes != p.q.sizes || lse.sizes != Sizes{p.batch, p.heads, p.queries})
    fail("flash attention backward: the sizes of grad_out, out or logsumexp do not fit those of query");
  Tensor dq = empty(dtype, p.q.sizes), dk = empty(dtype, p.k.sizes), dv = empty(dtype, p.v.sizes);
  in_parts(c.context, p.batch * p.heads, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> weights(static_cast<std::size_t>(p.queries * p.keys)), slopes(weights.size());
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t at_q = i * p.queries * p.width, at_k = i * p.keys * p.width;
      const double* dy = grad.as<double>() + at_q;
      p.scores(i, weights.data());
      gemm<double>(p.queries, p.keys, p.width, {dy, p.width, 1}, {p.v.as<double>() + at_k, 1, p.width}, slopes.data(),
                   p.keys);
      for (std::int64_t r = 0; r < p.queries; ++r) {
        double dot = 0;
        for (std::int64_t d = r * p.width; d < (r + 1) * p.width; ++d) dot += dy[d] * out.as<double>()[at_q + d];
        const double shift = lse.as<double>()[i * p.queries + r];
        for (std::int64_t j = 0; j < p.keys; ++j) {
          double& w = weights[static_cast<std::size_t>(r * p.keys + j)];
          w = std::isinf(shift) ? 0 : std::exp(w - shift);
          double& s = slopes[static_cast<std::size_t>(r * p.keys + j)];
          s = w * (s - dot) * p.scale;
        }
      }
      gemm<double>(p.keys, p.width, p.queries, {weights.data(), 1, p.keys}, {dy, p.width, 1}, dv.as<double>() + at_k,
                   p.width);
      gemm<double>(p.queries, p.width, p.keys, {slopes.data(), p.keys, 1}, {p.k.as<double>() + at_k, p.width, 1},
                   dq.as<double>() + at_q, p.width);
      gemm<double>(p.keys, p.width, p.queries, {slopes.data(), 1, p.keys}, {p.q.as<double>() + at_q, p.width, 1},
                   dk.as<double>() + at_k, p.width);
    }
  });
  return ValueList{dq, dk, dv};
}

/// Turns a boolean mask into a term of the scores: 0 where it is true, -inf where it is false.
Arg additive_mask(DecomposeCall& c, const Arg& mask, DType dtype) {
  if (mask.is_none() || c.build.tensor(mask).dtype != DType::Bool) return mask;
  Builder& b = c.build;
  const TensorMeta& query = c.tensor("query");
  Node* minus_infinity = b.call("aten.scalar_tensor.default", {-std::numeric_limits<double>::infinity()},
                                {{"dtype", dtype}, {"device", query.device}});
  return b.call("aten.where.ScalarSelf", {mask, 0.0, minus_infinity});
}

bool requires_grad(const Arg& arg) {
  return arg.node() && Builder::tensor(arg).requires_grad;
}

/// A probability that is known only at run time may be 0, which the call of dropout finds.
bool may_drop(const FakeCall& c) {
  const auto p = c.known_number("dropout_p");
  return !p || as_double(*p) > 0;
}

/// Whether PyTorch chooses its CPU flash kernel (sdp_utils_cpp.cpp).
bool takes_flash(DecomposeCall& c) {
  const TensorMeta &q = c.tensor("query"), &k = c.tensor("key"), &v = c.tensor("value");
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4 || !is_floating(q.dtype)) return false;
  if (may_drop(c) || requires_grad(c.arg("attn_mask"))) return false;
  if (q.sizes[0] != k.sizes[0] || q.sizes[0] != v.sizes[0]) return false;
  if (!c.boolean("enable_gqa") && (q.sizes[1] != k.sizes[1] || q.sizes[1] != v.sizes[1])) return false;
  if (k.sizes[1] != v.sizes[1]) return false;
  if (q.sizes[3] != k.sizes[3] || q.sizes[3] != v.sizes[3]) return false;
  for (const TensorMeta* t : {&q, &k, &v})
    if (!t->strides[3].is(1) || t->sizes[2].is(0)) return false;
  if (!c.has("attn_mask")) return true;
  const TensorMeta& mask = c.tensor("attn_mask");
  if (mask.dim() != 2 && mask.dim() != 4) return false;
  SymExpr full[] = {q.sizes[0], q.sizes[1], q.sizes[2], k.sizes[2]};
  for (std::size_t i = 0; i < mask.dim(); ++i)
    if (SymExpr size = mask.sizes[mask.dim() - 1 - i]; !size.is(1) && size != full[3 - i]) return false;
  return true;
}

/// Repeats each key and value head for the query heads that share it (grouped-query attention).
Node* expand_heads(DecomposeCall& c, Node* x) {
  if (!c.boolean("enable_gqa")) return x;
  const TensorMeta &query = c.tensor("query"), &meta = Builder::tensor(x);
  if (query.dim() < 3 || meta.dim() < 3) fail("grouped-query attention takes query, key and value with heads");
  const SymExpr heads = query.sizes[query.dim() - 3], own = meta.sizes[meta.dim() - 3];
  if (heads == own) return x;
  if (own.is(0) || !checked(c, sym_eq(sym_mod(heads, own), 0), "grouped-query attention"))
    fail("Number of heads in key and value must divide the number of heads in query");
  return c.build.call("aten.repeat_interleave.self_int", {x, c.build.size(sym_floordiv(heads, own)), -3});
}

/// Attention written as matrix products. `weights` are the softmax of the scores (float32 for half types).
struct Products {
  Node *result, *weights;
};
Products attention_by_products(DecomposeCall& c, Arg mask) {
  Builder& b = c.build;
  const TensorMeta& q = c.tensor("query");
  if (q.dim() < 2 || c.tensor("key").dim() < 2 || c.tensor("value").dim() < 2)
    fail("scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional");
  const auto width = c.has("scale") ? 0 : guarded_number(c, q.sizes.back(), "the scale of attention");
  if (!width) fail_unsupported("attention over a head size known only at run time, without a scale");
  double scale = c.has("scale") ? as_double(c.number("scale")) : 1 / std::sqrt(static_cast<double>(*width));
  double root = std::sqrt(std::abs(scale));
  bool half = q.dtype == DType::Float16 || q.dtype == DType::BFloat16;
  auto widened = [&](std::string_view name) {
    return to_dtype(b, c.arg(name), half ? DType::Float32 : c.tensor(name).dtype);
  };
  Node *query = widened("query"), *key = widened("key"), *value = widened("value");
  query = b.call("aten.mul.Scalar", {query, scale < 0 ? -root : root});
  if (c.boolean("is_causal")) {
    if (!mask.is_none())
      fail("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    SymList sizes = {q.sizes[q.dim() - 2], b.tensor(key).sizes[b.tensor(key).dim() - 2]};
    Node* ones = b.call("aten.ones.default", {b.sizes(sizes)}, {{"dtype", DType::Bool}, {"device", q.device}});
    mask = additive_mask(c, b.call("aten.tril.default", {ones}), b.tensor(query).dtype);
  }
  key = expand_heads(c, key);
  value = expand_heads(c, value);
  Node* transposed = b.call("aten.transpose.int", {key, -2, -1});
  Node* scores = b.call("aten.matmul.default", {query, b.call("aten.mul.Scalar", {transposed, root})});
  if (!mask.is_none()) scores = b.call("aten.add.Tensor", {scores, mask});
  Node* weights = b.call("aten._safe_softmax.default", {scores, -1});
  if (may_drop(c)) {
    if (c.schema.index_of("dropout_mask") >= 0 && c.has("dropout_mask")) {
      Node* dropped = b.call("aten.logical_not.default", {c.arg("dropout_mask")});
      weights = b.call("aten.masked_fill.Scalar", {weights, dropped, 0.0});
      value = b.call("aten.mul.Scalar", {value, 1 / (1 - as_double(c.number("dropout_p")))});
    } else {
      weights = b.call("aten.dropout.default", {weights, c.arg("dropout_p"), true});
    }
  }
  Node* result = b.call("aten.matmul.default", {weights, value});
  return {half ? to_dtype(b, result, q.dtype) : result, weights};
}

/// _scaled_dot_product_attention_math: returns the result and the weights.
Arg decompose_attention_math(DecomposeCall& c) {
  Products p = attention_by_products(c, additive_mask(c, c.arg("attn_mask"), c.tensor("query").dtype));
  return Arg::tuple({p.result, to_dtype(c.build, p.weights, c.tensor("query").dtype)});
}

Arg decompose_attention(DecomposeCall& c) {
  bool flash = takes_flash(c);
  Arg mask = additive_mask(c, c.arg("attn_mask"), c.tensor("query").dtype);
  if (!flash) return attention_by_products(c, mask).result;
  Builder& b = c.build;
  // PyTorch's kernel shares heads itself; ours wants one for each head of the query.
  Node *key = expand_heads(c, tensor_node(c, "key")), *value = expand_heads(c, tensor_node(c, "value"));
  Node* result = b.call("aten._scaled_dot_product_flash_attention_for_cpu.default",
                        {c.arg("query"), key, value, c.arg("dropout_p"), c.arg("is_causal")},
                        {{"attn_mask", mask}, {"scale", c.arg("scale")}});
  return b.getitem(result, 0);
}

}  // namespace

void register_attention(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add_without_record({"_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
                        "_scaled_dot_product_attention_math_for_cpu"});
  t.add("aten._scaled_dot_product_flash_attention_for_cpu.default", fake_flash, eval_flash,
        {{"query, key, value",
          "aten._scaled_dot_product_flash_attention_for_cpu_backward.default(grad, query, key, value, result0, "
          "result1, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)"}},
        {.cost = {.expensive = true, .operations = [](const Node& n) { return attention_operations(n, 0, false); }},
         .library = LibraryRoutine::Attention,
         .family = Family::Matmul});
  t.add("aten._scaled_dot_product_flash_attention_for_cpu_backward.default", fake_flash_backward, eval_flash_backward,
        {},
        {.cost = {.expensive = true, .operations = [](const Node& n) { return attention_operations(n, 1, true); }},
         .library = LibraryRoutine::AttentionBackward});
  t.add("aten.scaled_dot_product_attention.default",
        {.decompose = decompose_attention,
         .cost = {.operations = [](const Node& n) { return attention_operations(n, 0, false); }},
         .family = Family::Matmul});
  t.add("aten._scaled_dot_product_attention_math.default", {.decompose = decompose_attention_math});
}

}  // namespace partita
