// Losses that PyTorch decomposes to other operators.
#include <algorithm>

#include "core/ops/families/loss.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

Reduction reduction(FakeCall& c) {
  return static_cast<Reduction>(c.integer("reduction"));
}

/// The class weights with the sizes that broadcast against the input.
Node* broadcast_weight(DecomposeCall& c, std::size_t class_dim) {
  std::vector<Arg> shape(c.tensor("self").dim(), Arg(1));
  shape[class_dim] = c.build.size(c.tensor("weight").sizes[0]);
  return c.build.call("aten.view.default", {c.arg("weight"), Arg::list(std::move(shape))});
}

/// x * smoothing / classes
Node* smoothed(Builder& b, Node* x, double smoothing, SymExpr classes) {
  if (classes.is_int()) return b.call("aten.mul.Scalar", {x, smoothing / static_cast<double>(classes.as_int())});
  return b.call("aten.div.Scalar", {b.call("aten.mul.Scalar", {x, smoothing}), b.size(classes)});
}

Node* cross_entropy_of_probabilities(DecomposeCall& c, Node* log_probabilities, std::size_t class_dim,
                                     double smoothing) {
  Builder& b = c.build;
  SymExpr classes = c.tensor("self").sizes[class_dim];
  Node* target = tensor_node(c, "target");
  if (smoothing > 0) {
    target = b.call("aten.mul.Scalar", {target, 1 - smoothing});
    if (classes.is_int()) {
      target = b.call("aten.add.Scalar", {target, smoothing / static_cast<double>(classes.as_int())});
    } else {
      Node* one = b.call("aten.ones_like.default", {target});
      target = b.call("aten.add.Tensor", {target, smoothed(b, one, smoothing, classes)});
    }
  }
  Node* losses = b.call("aten.mul.Tensor", {log_probabilities, target});
  if (c.has("weight")) losses = b.call("aten.mul.Tensor", {losses, broadcast_weight(c, class_dim)});
  if (reduction(c) == Reduction::None) {
    Node* sums = b.call("aten.sum.dim_IntList", {losses, Arg::list({static_cast<std::int64_t>(class_dim)})});
    return b.call("aten.neg.default", {sums});
  }
  Node* loss = b.call("aten.neg.default", {b.call("aten.sum.default", {losses})});
  if (reduction(c) == Reduction::Sum) return loss;
  const SymExpr samples = classes.is(0) ? SymExpr(0) : sym_floordiv(c.tensor("self").numel(), classes);
  return b.call("aten.div.Scalar", {loss, b.size(samples)});
}

Node* smoothed_cross_entropy(DecomposeCall& c, Node* log_probabilities, std::size_t class_dim, double smoothing) {
  Builder& b = c.build;
  Node* target = tensor_node(c, "target");
  Node* hard = b.call("aten.nll_loss_nd.default",
                      {log_probabilities, target, c.arg("weight"), c.arg("reduction"), c.arg("ignore_index")});
  Node* losses = log_probabilities;
  if (c.has("weight")) losses = b.call("aten.mul.Tensor", {losses, broadcast_weight(c, class_dim)});
  losses = b.call("aten.sum.dim_IntList", {losses, Arg::list({static_cast<std::int64_t>(class_dim)})});
  losses = b.call("aten.neg.default", {losses});
  Node* ignored = b.call("aten.eq.Scalar", {target, c.arg("ignore_index")});
  losses = b.call("aten.masked_fill.Scalar", {losses, ignored, 0.0});
  Node* smooth = losses;
  if (reduction(c) == Reduction::Sum) smooth = b.call("aten.sum.default", {losses});
  if (reduction(c) == Reduction::Mean) {
    Node* total;
    if (c.has("weight")) {
      // PyTorch selects the targets that are not ignored, whose number is known only at run time. Here ignored targets
      // get weight 0, which gives the same sum.
      Node* label = b.call("aten.masked_fill.Scalar", {target, ignored, 0});
      Node* weights = b.call("aten.index.Tensor", {c.arg("weight"), Arg::list({label})});
      total = b.call("aten.sum.default", {b.call("aten.masked_fill.Scalar", {weights, ignored, 0.0})});
    } else {
      total = b.call("aten.sum.default", {b.call("aten.bitwise_not.default", {ignored})});
    }
    smooth = b.call("aten.div.Tensor", {b.call("aten.sum.default", {losses}), total});
  }
  smooth = smoothed(b, smooth, smoothing, c.tensor("self").sizes[class_dim]);
  hard = b.call("aten.mul.Scalar", {hard, 1 - smoothing});
  return b.call("aten.add.Tensor", {hard, smooth});
}

Arg decompose_cross_entropy_loss(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  if (self.dim() == 0) fail("cross_entropy_loss expects an input of at least 1 dimension");
  std::size_t class_dim = self.dim() == 1 ? 0 : 1;
  if (c.has("weight") &&
      (c.tensor("weight").dim() != 1 ||
       !checked(c, sym_eq(c.tensor("weight").sizes[0], self.sizes[class_dim]), "cross_entropy weight")))
    fail("cross_entropy: weight tensor should be defined either for all " + self.sizes[class_dim].str() +
         " classes or no classes");
  double smoothing = as_double(c.number("label_smoothing"));
  if (smoothing < 0 || smoothing > 1)
    fail("label_smoothing must be between 0.0 and 1.0. Got: " + std::to_string(smoothing));
  Node* log_probabilities =
      b.call("aten.log_softmax.int", {c.arg("self"), static_cast<std::int64_t>(class_dim), self.dtype});
  const auto equal = [&](SymExpr a, SymExpr b) { return guard_or(c, sym_eq(a, b), false, "a target for each class"); };
  if (std::ranges::equal(self.sizes, c.tensor("target").sizes, equal))
    return cross_entropy_of_probabilities(c, log_probabilities, class_dim, smoothing);
  if (smoothing > 0) return smoothed_cross_entropy(c, log_probabilities, class_dim, smoothing);
  return b.call("aten.nll_loss_nd.default",
                {log_probabilities, c.arg("target"), c.arg("weight"), c.arg("reduction"), c.arg("ignore_index")});
}

/// reduced(losses, reduction): the losses, their mean or their sum (apply_loss_reduction, native/Loss.cpp).
Arg reduced(const FormulaCall& f) {
  return f("x0 if x1 == 0 else mean(x0) if x1 == 1 else sum(x0)");
}

}  // namespace

void register_loss_composites(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add_without_record({"cross_entropy"});
  t.add_formula_functions({{"reduced", reduced}});
  t.add("aten.l1_loss.default", {.program = "reduced(abs(self - target), reduction)"});
  t.add("aten.kl_div.default",
        {.program =
             "cross = None if log_target else target * self; "
             "reduced(exp(target) * (target - self) if log_target else xlogy(target, target) - cross, reduction)"});
  t.add("aten.cross_entropy_loss.default", {.decompose = decompose_cross_entropy_loss});
}

}  // namespace partita
