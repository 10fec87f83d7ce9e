// Elementwise losses with a reduction. Each consists of a function of (input, target) and its derivative.
#include <fmt/format.h>

#include "core/ops/families/loss.h"
#include "core/ops/families/lower_norm.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

/// The dtype of a loss is that of all arguments together, or of the argument that PyTorch makes it of.
constexpr const char* of_all = nullptr;
constexpr char of_self[] = "self", of_target[] = "target";

/// The metas of a call's tensor arguments, without those that are None.
std::vector<const TensorMeta*> operands(FakeCall& c, std::span<const char* const> names) {
  std::vector<const TensorMeta*> out;
  for (const char* name : names)
    if (c.schema.index_of(name) >= 0 && c.has(name)) out.push_back(&c.tensor(name));
  return out;
}

TensorMeta elementwise(FakeCall& c, const std::vector<const TensorMeta*>& tensors) {
  std::vector<SymList> sizes;
  std::vector<Operand> types;
  for (const TensorMeta* t : tensors) {
    sizes.push_back(t->sizes);
    types.push_back(Operand::of(*t));
  }
  TensorMeta meta = new_like(*tensors[0], broadcast(c, sizes));
  meta.dtype = result_type(types);
  if (!is_floating(meta.dtype))
    fail(fmt::format("\"{}\" not implemented for '{}'", c.schema.base, torch_name(meta.dtype)));
  meta.strides = elementwise_strides(c, meta.sizes, tensors);
  return meta;
}

template <const char* like>
TensorMeta losses_of(FakeCall& c) {
  constexpr const char* tensors[] = {"self", "target", "weight", "pos_weight"};
  TensorMeta meta = elementwise(c, operands(c, tensors));
  if constexpr (like != nullptr) {
    const DType made = c.tensor(like).dtype;
    if (is_floating(meta.dtype) && !is_floating(made))
      fail(fmt::format("result type {} can't be cast to the desired output type {}", torch_name(meta.dtype),
                       torch_name(made)));
    meta.dtype = made;
  }
  return meta;
}

template <const char* like>
Meta fake_loss(FakeCall& c) {
  const TensorMeta meta = losses_of<like>(c);
  if (reduction_of(c) == Reduction::None) return meta;
  return new_like(meta, {});
}

/// The strides are those of a sum that begins with self, as FakeTensor has them (eager PyTorch makes some of these
/// gradients row-major), or with the target.
template <bool target_first = false>
Meta fake_loss_backward(FakeCall& c) {
  constexpr const char* tensors[] = {target_first ? "target" : "self", target_first ? "self" : "target", "weight",
                                     "grad_output"};
  return elementwise(c, operands(c, tensors));
}

void lower_mse_loss(loops::LowerCall& call) {
  const loops::Arithmetic make = loops::arithmetic(call, call.to.cast(call.in("self"), call.out().dtype));
  const loops::LoweredTensor losses = make.square(make.sub(call.in("self"), call.in("target")));
  const auto reduction = reduction_of(call);
  if (reduction == Reduction::None) return call.give(losses);
  const std::vector<bool> all(losses.dim(), true);
  call.give(reduction == Reduction::Mean ? make.mean(losses, all) : make.sum(losses, all));
}

void lower_mse_loss_backward(loops::LowerCall& call) {
  const loops::LoweredTensor self = call.in("self");
  const loops::Arithmetic make = loops::arithmetic(call, call.to.cast(self, call.out().dtype));
  const bool mean = reduction_of(call) == Reduction::Mean;
  const SymExpr n = mean ? product(call.out_sizes()) : SymExpr(1);
  call.give(make({self, call.in("target"), call.in("grad_output")}, [=](loops::ScalarBuilder& b, auto v) {
    const DType t = b.dtype(v[0]);
    return b.Mul(b.Mul(b.Sub(v[0], v[1]), v[2]), b.Div(b.constant(t, 2), b.count(t, n)));
  }));
}

/// weighted(gradient, weight, self, reduction): how the gradient of a binary cross entropy ends.
Arg weighted(const FormulaCall& f) {
  const Arg gradient = f("x0 if x1 is None else x0 * x1");
  if (f.integer(3) != static_cast<std::int64_t>(Reduction::Mean)) return gradient;
  return f.build.call("aten.div.Scalar", {gradient, f.build.size(f.tensor(2).numel())});
}

/// What the losses are made of, once their arguments have one dtype.
constexpr char smooth_l1_loss[] =
    "d = abs(self - target); "
    "reduced(where(lt(d, beta), d * d * 0.5 / beta, d - beta * 0.5), reduction)";
constexpr char huber_loss[] =
    "d = abs(self - target); "
    "reduced(where(le(d, delta), d * d * 0.5, (d - delta * 0.5) * delta), reduction)";
constexpr char soft_margin_loss[] = "reduced(log1p(exp(-target * self)), reduction)";
constexpr char binary_cross_entropy[] =
    "losses = (target - 1) * aten.clamp_min.default(log1p(-self), -100) - "
    "target * aten.clamp_min.default(log(self), -100); "
    "reduced(losses if weight is None else losses * weight, reduction)";
/// PyTorch writes each step over the one before, and so keeps its dtype.
constexpr char binary_cross_entropy_with_logits[] =
    "logistic = log1p(exp(-abs(self))) + aten.clamp_min.default(-self, 0); "
    "positive = logistic if pos_weight is None else "
    "in_dtype(((pos_weight - 1) * target + 1) * logistic, dtype(self)); "
    "t = dtype(target); losses = in_dtype(in_dtype((1 - target) * self, t) + positive, t); "
    "reduced(losses if weight is None else in_dtype(losses * weight, t), reduction)";
constexpr char smooth_l1_loss_backward[] =
    "x = self - target; slope = where(le(x, -beta), -1.0, where(ge(x, beta), 1.0, x / beta)); "
    "g = slope * grad_output; weighted(g, None, g, reduction)";
constexpr char huber_loss_backward[] =
    "x = self - target; slope = where(le(x, -delta), -delta, where(ge(x, delta), delta, x)); "
    "g = slope * grad_output; weighted(g, None, g, reduction)";
constexpr char soft_margin_loss_backward[] =
    "z = exp(-target * self); g = -target * z / (1 + z) * grad_output; weighted(g, None, g, reduction)";
constexpr char binary_cross_entropy_backward[] =
    "slope = (self - target) / aten.clamp_min.default((1 - self) * self, 1e-12); "
    "g = slope * grad_output; w = g if weight is None else g * weight; weighted(w, None, w, reduction)";

/// Runs a program over the call's arguments, cast to the dtype that all have together, or to float32 for a half type.
/// The result has dtype `result`.
Arg run_in_one_dtype(DecomposeCall& c, const char* program, DType result) {
  constexpr const char* tensors[] = {"self", "target", "weight", "grad_output"};
  const DType dtype = opmath_dtype(elementwise(c, operands(c, tensors)).dtype);
  std::vector<std::pair<std::string, Arg>> names;
  for (const char* name : tensors)
    if (c.schema.index_of(name) >= 0 && c.has(name)) names.emplace_back(name, to_dtype(c.build, c.arg(name), dtype));
  return to_dtype(c.build, build_program(c, program, std::move(names)), result);
}
template <const char* like, const char* program>
Arg decompose(DecomposeCall& c) {
  return run_in_one_dtype(c, program, losses_of<like>(c).dtype);
}
template <const char* program>
Arg decompose_backward(DecomposeCall& c) {
  return run_in_one_dtype(c, program, fake_loss_backward<>(c).tensor()->dtype);
}

Arg decompose_with_logits(DecomposeCall& c) {
  return build_program(c, binary_cross_entropy_with_logits);
}

}  // namespace

void register_pointwise_loss(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add_formula_functions({{"weighted", weighted}});
  t.add("aten.mse_loss.default", fake_loss<of_all>, nullptr,
        {{"self", "mse_loss_backward(grad, self, target, reduction)"},
         {"target", "mse_loss_backward(grad, target, self, reduction)"}},
        {.lower = lower_mse_loss});
  t.add("aten.smooth_l1_loss.default", fake_loss<of_all>, nullptr,
        {{"self", "smooth_l1_loss_backward(grad, self, target, reduction, beta)"},
         {"target", "smooth_l1_loss_backward(grad, target, self, reduction, beta)"}},
        {.compile_decompose = decompose<of_all, smooth_l1_loss>});
  t.add("aten.huber_loss.default", fake_loss<of_self>, nullptr,
        {{"self", "huber_loss_backward(grad, self, target, reduction, delta)"},
         {"target", "huber_loss_backward(grad, target, self, reduction, delta)"}},
        {.compile_decompose = decompose<of_self, huber_loss>});
  t.add("aten.soft_margin_loss.default", fake_loss<of_all>, nullptr,
        {{"self", "soft_margin_loss_backward(grad, self, target, reduction)"}},
        {.compile_decompose = decompose<of_all, soft_margin_loss>});
  t.add("aten.binary_cross_entropy.default", fake_loss<of_self>, nullptr,
        {{"self", "aten.binary_cross_entropy_backward.default(grad, self, target, weight, reduction)"},
         {"target",
          "weighted(aten.clamp.default(log(1.0 - self) - log(self), -100, 100) * grad, weight, self, reduction)"}},
        {.compile_decompose = decompose<of_self, binary_cross_entropy>});
  t.add("aten.binary_cross_entropy_with_logits.default", fake_loss<of_target>, nullptr,
        {{"self",
          "t = None if pos_weight is None else pos_weight * target; "
          "weighted((sigmoid(self) - target if t is None else (t + 1 - target) * sigmoid(self) - t) * "
          "grad, weight, self, reduction)"},
         {"target",
          "p = None if pos_weight is None else aten.log_sigmoid.default(self); "
          "weighted(self * -grad if p is None else (aten.log_sigmoid.default(-self) - pos_weight * p) * "
          "grad, weight, self, reduction)"}},
        {.compile_decompose = decompose_with_logits});

  t.add("aten.mse_loss_backward.default", fake_loss_backward<>, nullptr,
        {{"grad_output", "grad * mse_loss_backward(ones_like(grad_output), self, target, reduction)"},
         {"self", "mse_loss_backward(grad_output, grad, zeros_like(grad), reduction)"},
         {"target", "-mse_loss_backward(grad_output, grad, zeros_like(grad), reduction)"}},
        {.lower = lower_mse_loss_backward});
  t.add("aten.smooth_l1_loss_backward.default", fake_loss_backward<>, nullptr, {},
        {.compile_decompose = decompose_backward<smooth_l1_loss_backward>});
  t.add("aten.huber_loss_backward.default", fake_loss_backward<>, nullptr, {},
        {.compile_decompose = decompose_backward<huber_loss_backward>});
  t.add("aten.soft_margin_loss_backward.default", fake_loss_backward<true>, nullptr, {},
        {.compile_decompose = decompose_backward<soft_margin_loss_backward>});
  t.add("aten.binary_cross_entropy_backward.default", fake_loss_backward<>, nullptr, {},
        {.compile_decompose = decompose_backward<binary_cross_entropy_backward>});
}

}  // namespace partita
