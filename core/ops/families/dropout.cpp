// The dropout functions that users call, written with a random mask. The mask has a number for each element, or for
// each channel ("feature"). Dropped elements become 0, or a value that keeps the mean and variance of selu's output
// ("alpha").
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/kernels/distributions.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

struct Kind {
  bool feature = false, alpha = false, in_place = false;
};

double probability(const auto& c) {
  const double p = as_double(c.number("p"));
  if (!(p >= 0 && p <= 1)) fail("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
  return p;
}

/// An uninitialised mask with a number for each element, or for each channel.
Node* mask(DecomposeCall& c, Node* x, bool feature) {
  Builder& b = c.build;
  if (!feature) return b.call("aten.empty_like.default", {x});
  SymList shape = b.tensor(x).sizes;
  if (shape.size() < 2) fail("Feature dropout requires at least 2 dimensions in the input");
  std::fill(shape.begin() + 2, shape.end(), SymExpr(1));
  return b.call("aten.new_empty.default", {x, b.sizes(shape)});
}

/// _dropout_impl of PyTorch's Dropout.cpp.
template <Kind kind>
Arg decompose(DecomposeCall& c) {
  Builder& b = c.build;
  Node* x = tensor_node(c, kind.in_place ? "self" : "input");
  const char* multiply = kind.in_place ? "aten.mul_.Tensor" : "aten.mul.Tensor";
  double p = probability(c);
  if (!c.boolean("train") || p == 0 || b.tensor(x).numel().is(0)) return x;
  if (p == 1) {
    const TensorMeta& meta = b.tensor(x);
    Node* zero = b.call("aten.zeros.default", {Arg::list({})},
                        {{"dtype", meta.dtype}, {"layout", Layout::Strided}, {"device", meta.device}});
    return b.call(multiply, {x, zero});
  }
  Node* noise = b.call("aten.bernoulli_.float", {mask(c, x, kind.feature), 1 - p});
  if (!kind.alpha) return b.call(multiply, {x, b.call("aten.div_.Scalar", {noise, 1 - p})});
  // `alpha` is the negative of selu's limit at -inf; `a` is the factor that restores the variance.
  constexpr double alpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  Node* shift = b.call("aten.add.Scalar", {noise, -1});
  shift = b.call("aten.add_.Scalar", {b.call("aten.mul_.Scalar", {shift, alpha * a}), alpha * a * p});
  Node* kept = b.call(multiply, {x, b.call("aten.mul_.Scalar", {noise, a})});
  return b.call("aten.add_.Tensor", {kept, shift});
}

/// PyTorch's compiler path decomposes dropout to native_dropout before autograd.
Arg decompose_dropout(DecomposeCall& c) {
  Builder& b = c.build;
  const bool drops_nothing = c.known_number("p") && probability(c) == 0;
  if (!c.boolean("train") || drops_nothing) return b.call("aten.clone.default", {c.arg("input")});
  return b.getitem(b.call("aten.native_dropout.default", {c.arg("input"), c.arg("p"), c.arg("train")}), 0);
}

Value run(const EvalCall& c, const char* op, std::vector<Value> args) {
  return unwrap(evaluate(Op::torch(op), std::move(args), {}, c.context));
}

/// Eager PyTorch returns the input itself where nothing is dropped (the decomposition returns a copy), and rounds
/// differently from native_dropout.
Value eval_dropout(EvalCall& c) {
  const Tensor& input = c.tensor("input");
  const double p = probability(c);
  if (!c.boolean("train") || p == 0 || input.numel() == 0) return input;
  if (p == 1) return run(c, "aten.mul.Tensor", {input, unwrap(Tensor::zeros(input.dtype, {}))});
  const Value noise = run(c, "aten.empty_like.default", {input});
  kernels::fill_bernoulli(*noise.get<Tensor>(), 1 - p, c.generator());
  return run(c, "aten.mul.Tensor", {input, run(c, "aten.div_.Scalar", {noise, 1 - p})});
}

bool drops(const EvalCall& c) {
  return !c.has("train") || c.boolean("train");
}

/// native_dropout(input, p, train) -> (output, mask)
Meta fake_native(FakeCall& c) {
  const TensorMeta& input = c.tensor("input");
  TensorMeta out = like_preserving(input, c.shapes), mask = out;
  if (!input.numel().is(0)) mask.dtype = DType::Bool;
  return MetaTuple{{out, mask}};
}
void check_scalable(DType dtype) {
  if (!is_floating(dtype) && !is_complex(dtype))
    fail("result type Float can't be cast to the desired output type " + std::string(torch_name(dtype)));
}

/// native_dropout_cpu of ATen/native/Dropout.cpp.
Value eval_native(EvalCall& c) {
  const Tensor& input = c.tensor("input");
  const std::vector<Tensor> outputs = kernels::allocate_all(c, fake_native);
  const Tensor &out = outputs[0], &mask = outputs[1];
  if (input.numel() == 0) return ValueList{out, mask};
  if (!drops(c)) {
    run(c, "aten.fill_.Scalar", {mask, true});
    out.copy_from(input);
    return ValueList{out, mask};
  }
  check_scalable(input.dtype);
  const double kept = 1 - as_double(c.number("p"));
  kernels::fill_bernoulli(mask, kept, c.generator());
  const Value factors = run(c, "aten.mul.Scalar", {unwrap(mask.to(input.dtype)), kept == 0 ? 0 : 1 / kept});
  return ValueList{run(c, "aten.mul.Tensor", {input, factors}), mask};
}

/// A mask for `input`, laid out like it. Its numbers are drawn in the order of memory.
Node* drawn_mask(DecomposeCall& c, double kept) {
  Builder& b = c.build;
  const TensorMeta like = like_preserving(c.tensor("input"), c.shapes);
  std::vector<std::size_t> order(like.dim());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t d, std::size_t e) {
    return c.test(sym_lt(like.strides[e], like.strides[d]), "the order of a mask");
  });
  SymList sizes(like.dim());
  std::vector<Arg> back(like.dim());
  for (std::size_t d = 0; d < order.size(); ++d) {
    sizes[d] = like.sizes[order[d]];
    back[order[d]] = static_cast<std::int64_t>(d);
  }
  Node* mask = b.call("aten.empty.memory_format", {b.sizes(sizes)}, {{"dtype", DType::Bool}, {"device", like.device}});
  mask = b.call("aten.bernoulli.p", {mask, kept});
  return std::ranges::is_sorted(order) ? mask : b.call("aten.permute.default", {mask, Arg::list(std::move(back))});
}

/// Only the mask is drawn by an operator's evaluation: what multiplies by it is fused with its neighbours.
Arg decompose_native(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& input = c.tensor("input");
  const double kept = 1 - as_double(c.number("p"));
  const bool drops = !c.has("train") || c.boolean("train");
  if (!drops || input.numel().is(0)) {
    const DType dtype = input.numel().is(0) ? input.dtype : DType::Bool;
    return Arg::tuple({b.call("aten.clone.default", {c.arg("input")}),
                       b.call("aten.ones_like.default", {c.arg("input")}, {{"dtype", dtype}})});
  }
  check_scalable(input.dtype);
  Node* mask = drawn_mask(c, kept);
  Node* factors = b.call("aten._to_copy.default", {mask}, {{"dtype", input.dtype}});
  factors = b.call("aten.mul.Scalar", {factors, kept == 0 ? 0 : 1 / kept});
  return Arg::tuple({b.call("aten.mul.Tensor", {c.arg("input"), factors}), mask});
}
}  // namespace

void register_dropout(OpTable& t) {
  t.default_family = Family::Random;
  t.add("aten.native_dropout.default", fake_native, eval_native,
        {{"input", "native_dropout_backward(grad, result1, dropout_scale(p, train))"}},
        {.compile_decompose = decompose_native, .kept = Kept::CoreAten, .random = true});
  t.add("aten.native_dropout_backward.default",
        {.program = "grad_output * (aten._to_copy.default(mask, dtype=dtype(grad_output)) * scale)"});
  t.add("aten.dropout.default",
        {.eval = eval_dropout, .decompose = decompose_dropout, .random = true, .views = {.may_alias = true}});
  t.add("aten.dropout_.default", {.decompose = decompose<Kind{.in_place = true}>});
  t.add("aten.feature_dropout.default", {.decompose = decompose<Kind{.feature = true}>});
  t.add("aten.feature_dropout_.default", {.decompose = decompose<Kind{.feature = true, .in_place = true}>});
  t.add("aten.alpha_dropout.default", {.decompose = decompose<Kind{.alpha = true}>});
  t.add("aten.alpha_dropout_.default", {.decompose = decompose<Kind{.alpha = true, .in_place = true}>});
  t.add("aten.feature_alpha_dropout.default", {.decompose = decompose<Kind{.feature = true, .alpha = true}>});
  t.add("aten.feature_alpha_dropout_.default",
        {.decompose = decompose<Kind{.feature = true, .alpha = true, .in_place = true}>});
}

}  // namespace partita
