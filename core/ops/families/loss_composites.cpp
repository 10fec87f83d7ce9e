// Losses that PyTorch decomposes to other operators.
#include <algorithm>

#include "core/ops/families/loss.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

// The programs of cross_entropy_loss read, beside its arguments, p, the logarithms of the probabilities, k, the
// dimension of the classes, shape, with which the weights broadcast against p, hard, 1 - label_smoothing, and the part
// of label_smoothing that each class gets: share if the number of classes is known, else label_smoothing / classes.

constexpr char of_probabilities[] =
    "t = target * hard if 0 < smoothing else target;"
    "t = t if not 0 < smoothing else t + share if known else t + ones_like(t) * smoothing / classes;"
    "losses = p * t; losses = losses if weight is None else losses * view(weight, shape);"
    "-sum(losses, [k]) if reduction == 0 else -sum(losses) if reduction == 2 else -sum(losses) / samples";

// PyTorch selects the targets that are not ignored, whose number is known only at run time. Here ignored targets get
// weight 0, which gives the same sum.
constexpr char smoothed[] =
    "of_targets = nll_loss_nd(p, target, weight, reduction, ignore_index);"
    "losses = p if weight is None else p * view(weight, shape);"
    "losses = -sum(losses, [k]);"
    "ignored = aten.eq.Scalar(target, ignore_index);"
    "losses = aten.masked_fill.Scalar(losses, ignored, 0.0);"
    "total = None if not reduction == 1 else sum(aten.bitwise_not.default(ignored)) if weight is None else "
    "sum(aten.masked_fill.Scalar(aten.index.Tensor(weight, [aten.masked_fill.Scalar(target, ignored, 0)]), ignored, "
    "0.0));"
    "smooth = losses if reduction == 0 else sum(losses) if reduction == 2 else sum(losses) / total;"
    "smooth = smooth * share if known else smooth * smoothing / classes;"
    "of_targets * hard + smooth";

Arg decompose_cross_entropy_loss(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& self = c.tensor("self");
  if (self.dim() == 0) fail("cross_entropy_loss expects an input of at least 1 dimension");
  const std::size_t class_dim = self.dim() == 1 ? 0 : 1;
  const SymExpr classes = self.sizes[class_dim];
  if (c.has("weight") && (c.tensor("weight").dim() != 1 ||
                          !checked(c, sym_eq(c.tensor("weight").sizes[0], classes), "cross_entropy weight")))
    fail("cross_entropy: weight tensor should be defined either for all " + classes.str() + " classes or no classes");
  const double smoothing = as_double(c.number("label_smoothing"));
  if (smoothing < 0 || smoothing > 1)
    fail("label_smoothing must be between 0.0 and 1.0. Got: " + std::to_string(smoothing));
  std::vector<std::pair<std::string, Arg>> names = {{"k", static_cast<std::int64_t>(class_dim)},
                                                    {"smoothing", smoothing},
                                                    {"hard", 1 - smoothing},
                                                    {"known", classes.is_int()},
                                                    {"dtype", self.dtype}};
  names.emplace_back("p", build_program(c, "aten.log_softmax.int(self, k, dtype)", names));
  const auto equal = [&](SymExpr a, SymExpr b) { return guard_or(c, sym_eq(a, b), false, "a target for each class"); };
  const bool probabilities = std::ranges::equal(self.sizes, c.tensor("target").sizes, equal);
  if (!probabilities && smoothing == 0)
    return build_program(c, "nll_loss_nd(p, target, weight, reduction, ignore_index)", names);
  if (smoothing > 0 && classes.is_int())
    names.emplace_back("share", smoothing / static_cast<double>(classes.as_int()));
  else if (smoothing > 0)
    names.emplace_back("classes", b.size(classes));
  if (c.has("weight")) {
    std::vector<Arg> shape(self.dim(), Arg(1));
    shape[class_dim] = b.size(c.tensor("weight").sizes[0]);
    names.emplace_back("shape", Arg::list(std::move(shape)));
  }
  if (probabilities && reduction_of(c) == Reduction::Mean)
    names.emplace_back("samples", b.size(classes.is(0) ? SymExpr(0) : sym_floordiv(self.numel(), classes)));
  return build_program(c, probabilities ? of_probabilities : smoothed, names);
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
