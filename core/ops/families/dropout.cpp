// The dropouts users write, as a generator's mask: of elements or of whole channels ("feature"), to zero or to the
// value that keeps the statistics of selu ("alpha").
#include <cmath>

#include "core/ops/families.h"
#include "core/ops/gradients.h"

namespace partita {

namespace {

struct Kind {
  bool feature = false, alpha = false, in_place = false;
};

double probability(DecomposeCall& c) {
  double p = as_double(c.number("p"));
  if (p < 0 || p > 1) fail("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
  return p;
}

/// One number for each element, or for each channel; not filled yet.
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
  // selu's negative saturation, and the factor that keeps the variance.
  constexpr double alpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  Node* shift = b.call("aten.add.Scalar", {noise, -1});
  shift = b.call("aten.add_.Scalar", {b.call("aten.mul_.Scalar", {shift, alpha * a}), alpha * a * p});
  Node* kept = b.call(multiply, {x, b.call("aten.mul_.Scalar", {noise, a})});
  return b.call("aten.add_.Tensor", {kept, shift});
}

/// PyTorch's compiler path decomposes dropout itself into native_dropout.
Arg decompose_dropout(DecomposeCall& c) {
  Builder& b = c.build;
  if (!c.boolean("train") || probability(c) == 0) return b.call("aten.clone.default", {c.arg("input")});
  return b.getitem(b.call("aten.native_dropout.default", {c.arg("input"), c.arg("p"), c.arg("train")}), 0);
}

/// Where nothing is dropped PyTorch's eager dropout gives its input, of which the traced one is a copy.
Value eval_dropout(EvalCall& c) {
  const Tensor& input = c.tensor("input");
  if (!c.boolean("train") || as_double(c.number("p")) == 0 || input.numel() == 0) return input;
  Value dropped = unwrap(
      evaluate(Op::torch("aten.native_dropout.default"), {c.arg("input"), c.arg("p"), c.arg("train")}, {}, c.threads));
  return dropped.get<ValueList>()->front();
}

}  // namespace

void register_dropout(OpTable& t) {
  t.add("aten.dropout.default", {.eval = eval_dropout, .decompose = decompose_dropout});
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
