// Elementwise losses with a reduction. Each consists of a function of (input, target) and its derivative.
#include <cmath>

#include <fmt/format.h>

#include "core/ops/families/loss.h"
#include "core/ops/families/lower_norm.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

/// The losses: their value, and its derivative by x, as functions of x, y and one parameter (beta or delta; most have
/// none). Their dtype is that of all arguments together, or of the argument `like`, which PyTorch makes the losses of.
struct Mse {
  static constexpr const char *parameter = nullptr, *like = nullptr;
  template <class T>
  static T value(T x, T y, T) {
    return (x - y) * (x - y);
  }
  template <class T>
  static T slope(T x, T y, T) {
    return T(2) * (x - y);
  }
};

struct SmoothL1 {
  static constexpr const char *parameter = "beta", *like = nullptr;
  template <class T>
  static T value(T x, T y, T beta) {
    T d = std::abs(x - y);
    return d < beta ? T(0.5) * d * d / beta : d - T(0.5) * beta;
  }
  template <class T>
  static T slope(T x, T y, T beta) {
    T d = x - y;
    return d <= -beta ? T(-1) : d >= beta ? T(1) : d / beta;
  }
};

struct Huber {
  static constexpr const char *parameter = "delta", *like = "self";
  template <class T>
  static T value(T x, T y, T delta) {
    T d = std::abs(x - y);
    return d <= delta ? T(0.5) * d * d : delta * (d - T(0.5) * delta);
  }
  template <class T>
  static T slope(T x, T y, T delta) {
    T d = x - y;
    return d <= -delta ? -delta : d >= delta ? delta : d;
  }
};

struct SoftMargin {
  static constexpr const char *parameter = nullptr, *like = nullptr;
  template <class T>
  static T value(T x, T y, T) {
    return std::log1p(std::exp(-y * x));
  }
  template <class T>
  static T slope(T x, T y, T) {
    T z = std::exp(-y * x);
    return -y * z / (T(1) + z);
  }
};

struct BinaryCrossEntropy {
  static constexpr const char *parameter = nullptr, *like = "self";
  template <class T>
  static T value(T x, T y, T) {
    return (y - T(1)) * std::max(std::log1p(-x), T(-100)) - y * std::max(std::log(x), T(-100));
  }
  template <class T>
  static T slope(T x, T y, T) {
    return (x - y) / std::max((T(1) - x) * x, T(1e-12));
  }
};

struct BinaryCrossEntropyWithLogits {
  static constexpr const char* like = "target";
};

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
  meta.strides = elementwise_strides(c, meta.sizes, tensors);
  return meta;
}

template <class Loss>
TensorMeta losses_of(FakeCall& c) {
  constexpr const char* tensors[] = {"self", "target", "weight", "pos_weight"};
  TensorMeta meta = elementwise(c, operands(c, tensors));
  if constexpr (Loss::like != nullptr) {
    const DType made = c.tensor(Loss::like).dtype;
    if (is_floating(meta.dtype) && !is_floating(made))
      fail(fmt::format("result type {} can't be cast to the desired output type {}", torch_name(meta.dtype),
                       torch_name(made)));
    meta.dtype = made;
  }
  return meta;
}

template <class Loss>
Meta fake_loss(FakeCall& c) {
  const TensorMeta meta = losses_of<Loss>(c);
  if (static_cast<Reduction>(c.integer("reduction")) == Reduction::None) return meta;
  return new_like(meta, {});
}

/// The strides are those of a sum that begins with self, as FakeTensor has them (eager PyTorch makes some of these
/// gradients row-major), or with the target.
template <class Loss>
Meta fake_loss_backward(FakeCall& c) {
  constexpr bool of_target = std::is_same_v<Loss, SoftMargin>;  // its kernel begins with target * exp(...)
  constexpr const char* tensors[] = {of_target ? "target" : "self", of_target ? "self" : "target", "weight",
                                     "grad_output"};
  return elementwise(c, operands(c, tensors));
}

template <class T>
Value reduce(Tensor out, const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::None) {
    return with_elements(out, losses);
  }
  double sum = 0;
  for (std::int64_t i : steps(losses.numel())) sum += static_cast<double>(losses.as<T>()[i]);
  if (reduction == Reduction::Mean) sum /= static_cast<double>(losses.numel());
  out.copy_from(unwrap(Tensor::scalar(DType::Float64, sum)));
  return out;
}

const Tensor* optional(const EvalCall& c, const char* name) {
  return c.schema.index_of(name) >= 0 && c.has(name) ? &c.tensor(name) : nullptr;
}

/// What the dtype of all arguments together is computed in. Those that are None are null.
DType dtype_of_all(std::span<const Tensor* const> inputs) {
  std::vector<Operand> types;
  for (const Tensor* t : inputs)
    if (t) types.push_back({t->dtype, t->sizes.empty() ? Operand::Rank::ZeroDim : Operand::Rank::Tensor});
  return evaluation_dtype(result_type(types));
}

template <class Loss, class C>
double parameter(const C& c) {
  if constexpr (Loss::parameter != nullptr)
    return as_double(c.number(Loss::parameter));
  else
    return 0;
}

template <class Loss>
Value eval_loss(EvalCall& c) {
  Tensor out = allocate(c, fake_loss<Loss>);
  const Tensor* inputs[] = {&c.tensor("self"), &c.tensor("target"), optional(c, "weight")};
  const DType dtype = dtype_of_all(inputs);
  Operands x = broadcast_load(inputs, dtype);
  Tensor losses = empty(dtype, x.sizes);
  return dispatch_floating(dtype, c.schema.base.c_str(), [&]<class T>() {
    T p = static_cast<T>(parameter<Loss>(c));
    for (std::int64_t i : steps(x.numel())) {
      T loss = Loss::value(x.tensors[0].as<T>()[i], x.tensors[1].as<T>()[i], p);
      losses.as<T>()[i] = x.tensors[2].storage ? loss * x.tensors[2].as<T>()[i] : loss;
    }
    return reduce<T>(out, losses, static_cast<Reduction>(c.integer("reduction")));
  });
}

template <class Loss>
Value eval_loss_backward(EvalCall& c) {
  Tensor out = allocate(c, fake_loss_backward<Loss>);
  DType dtype = evaluation_dtype(out.dtype);
  const Tensor* inputs[] = {&c.tensor("self"), &c.tensor("target"), &c.tensor("grad_output"), optional(c, "weight")};
  Operands x = broadcast_load(inputs, dtype);
  Tensor dx = empty(dtype, x.sizes);
  dispatch_floating(dtype, c.schema.base.c_str(), [&]<class T>() {
    T p = static_cast<T>(parameter<Loss>(c));
    bool mean = static_cast<Reduction>(c.integer("reduction")) == Reduction::Mean;
    T scale = mean ? T(1) / static_cast<T>(x.numel()) : T(1);
    for (std::int64_t i : steps(x.numel())) {
      T slope = Loss::slope(x.tensors[0].as<T>()[i], x.tensors[1].as<T>()[i], p) * x.tensors[2].as<T>()[i] * scale;
      dx.as<T>()[i] = x.tensors[3].storage ? slope * x.tensors[3].as<T>()[i] : slope;
    }
  });
  return with_elements(out, dx);
}

void lower_mse_loss(loops::LowerCall& call) {
  const loops::Arithmetic make = loops::arithmetic(call, call.in("self"));
  const loops::LoweredTensor losses = make.square(make.sub(call.in("self"), call.in("target")));
  const auto reduction = static_cast<Reduction>(call.integer("reduction"));
  if (reduction == Reduction::None) return call.give(losses);
  const std::vector<bool> all(losses.dim(), true);
  call.give(reduction == Reduction::Mean ? make.mean(losses, all) : make.sum(losses, all));
}

void lower_mse_loss_backward(loops::LowerCall& call) {
  const loops::LoweredTensor self = call.in("self");
  const loops::Arithmetic make = loops::arithmetic(call, self);
  const bool mean = static_cast<Reduction>(call.integer("reduction")) == Reduction::Mean;
  const SymExpr n = mean ? product(call.out_sizes()) : SymExpr(1);
  call.give(make({self, call.in("target"), call.in("grad_output")}, [=](loops::ScalarBuilder& b, auto v) {
    const DType t = b.dtype(v[0]);
    return b.Mul(b.Mul(b.Sub(v[0], v[1]), v[2]), b.Div(b.constant(t, 2), b.count(t, n)));
  }));
}

/// The loss is (1 - y) x + p (max(-x, 0) + log(1 + exp(-|x|))), where p is 1 + (pos_weight - 1) y.
Value eval_bce_with_logits(EvalCall& c) {
  Tensor out = allocate(c, fake_loss<BinaryCrossEntropyWithLogits>);
  const Tensor &self = c.tensor("self"), &target = c.tensor("target"), *positive = optional(c, "pos_weight");
  const Tensor* inputs[] = {&self, &target, optional(c, "weight"), positive};
  const DType dtype = dtype_of_all(inputs);
  Operands operands = broadcast_load(inputs, dtype);
  Tensor losses = empty(dtype, operands.sizes);
  return dispatch_floating(dtype, "binary_cross_entropy_with_logits", [&]<class T>() {
    auto at = [&](std::size_t k, std::int64_t i) { return operands.tensors[k].as<T>()[i]; };
    // Eager PyTorch calls one operator for each step, which rounds to the dtype of its result.
    auto in_self = [&](T v) { return rounded(self.dtype, v); };
    auto in_target = [&](T v) { return rounded(target.dtype, v); };
    auto in_weight = [&](T v) { return positive && positive->dtype == target.dtype ? in_target(v) : v; };
    for (std::int64_t i : steps(operands.numel())) {
      T x = at(0, i), y = at(1, i);
      T logistic = in_self(std::log1p(std::exp(-std::abs(x))) + std::max(-x, T(0)));
      if (positive) {
        const T less = rounded(positive->dtype, at(3, i) - T(1));
        logistic = in_self(logistic * in_weight(in_weight(less * y) + T(1)));
      }
      T loss = in_target(in_target(in_target(T(1) - y) * x) + logistic);
      losses.as<T>()[i] = operands.tensors[2].storage ? in_target(loss * at(2, i)) : loss;
    }
    return reduce<T>(out, losses, static_cast<Reduction>(c.integer("reduction")));
  });
}

/// as_dtype_of(x, like): x in the dtype of `like`.
Arg as_dtype_of(const FormulaCall& f) {
  const DType dtype = f.tensor(1).dtype;
  if (f.tensor(0).dtype == dtype) return f.args[0];
  return f.build.call("aten._to_copy.default", {f.args[0]}, {{"dtype", dtype}});
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
    "as_dtype_of(((pos_weight - 1) * target + 1) * logistic, self); "
    "losses = as_dtype_of(as_dtype_of((1 - target) * self, target) + positive, target); "
    "reduced(losses if weight is None else as_dtype_of(losses * weight, target), reduction)";
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
    if (c.schema.index_of(name) >= 0 && c.has(name) && c.tensor(name).dtype != dtype)
      names.emplace_back(name, c.build.call("aten._to_copy.default", {c.arg(name)}, {{"dtype", dtype}}));
  const Arg value = build_program(c, program, std::move(names));
  return dtype == result ? value : c.build.call("aten._to_copy.default", {value}, {{"dtype", result}});
}
template <class Loss, const char* program>
Arg decompose(DecomposeCall& c) {
  return run_in_one_dtype(c, program, losses_of<Loss>(c).dtype);
}
template <class Loss, const char* program>
Arg decompose_backward(DecomposeCall& c) {
  return run_in_one_dtype(c, program, fake_loss_backward<Loss>(c).tensor()->dtype);
}

Arg decompose_with_logits(DecomposeCall& c) {
  return build_program(c, binary_cross_entropy_with_logits);
}

}  // namespace

void register_pointwise_loss(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add_formula_functions({{"weighted", weighted}, {"as_dtype_of", as_dtype_of}});
  t.add("aten.mse_loss.default", fake_loss<Mse>, eval_loss<Mse>,
        {{"self", "mse_loss_backward(grad, self, target, reduction)"},
         {"target", "mse_loss_backward(grad, target, self, reduction)"}},
        {.lower = lower_mse_loss});
  t.add("aten.smooth_l1_loss.default", fake_loss<SmoothL1>, eval_loss<SmoothL1>,
        {{"self", "smooth_l1_loss_backward(grad, self, target, reduction, beta)"},
         {"target", "smooth_l1_loss_backward(grad, target, self, reduction, beta)"}},
        {.compile_decompose = decompose<SmoothL1, smooth_l1_loss>});
  t.add("aten.huber_loss.default", fake_loss<Huber>, eval_loss<Huber>,
        {{"self", "huber_loss_backward(grad, self, target, reduction, delta)"},
         {"target", "huber_loss_backward(grad, target, self, reduction, delta)"}},
        {.compile_decompose = decompose<Huber, huber_loss>});
  t.add("aten.soft_margin_loss.default", fake_loss<SoftMargin>, eval_loss<SoftMargin>,
        {{"self", "soft_margin_loss_backward(grad, self, target, reduction)"}},
        {.compile_decompose = decompose<SoftMargin, soft_margin_loss>});
  t.add("aten.binary_cross_entropy.default", fake_loss<BinaryCrossEntropy>, eval_loss<BinaryCrossEntropy>,
        {{"self", "aten.binary_cross_entropy_backward.default(grad, self, target, weight, reduction)"},
         {"target",
          "weighted(aten.clamp.default(log(1.0 - self) - log(self), -100, 100) * grad, weight, self, reduction)"}},
        {.compile_decompose = decompose<BinaryCrossEntropy, binary_cross_entropy>});
  t.add("aten.binary_cross_entropy_with_logits.default", fake_loss<BinaryCrossEntropyWithLogits>, eval_bce_with_logits,
        {{"self",
          "t = None if pos_weight is None else pos_weight * target; "
          "weighted((sigmoid(self) - target if t is None else (t + 1 - target) * sigmoid(self) - t) * "
          "grad, weight, self, reduction)"},
         {"target",
          "p = None if pos_weight is None else aten.log_sigmoid.default(self); "
          "weighted(self * -grad if p is None else (aten.log_sigmoid.default(-self) - pos_weight * p) * "
          "grad, weight, self, reduction)"}},
        {.compile_decompose = decompose_with_logits});

  t.add("aten.mse_loss_backward.default", fake_loss_backward<Mse>, eval_loss_backward<Mse>,
        {{"grad_output", "grad * mse_loss_backward(ones_like(grad_output), self, target, reduction)"},
         {"self", "mse_loss_backward(grad_output, grad, zeros_like(grad), reduction)"},
         {"target", "-mse_loss_backward(grad_output, grad, zeros_like(grad), reduction)"}},
        {.lower = lower_mse_loss_backward});
  t.add("aten.smooth_l1_loss_backward.default", fake_loss_backward<SmoothL1>, eval_loss_backward<SmoothL1>, {},
        {.compile_decompose = decompose_backward<SmoothL1, smooth_l1_loss_backward>});
  t.add("aten.huber_loss_backward.default", fake_loss_backward<Huber>, eval_loss_backward<Huber>, {},
        {.compile_decompose = decompose_backward<Huber, huber_loss_backward>});
  t.add("aten.soft_margin_loss_backward.default", fake_loss_backward<SoftMargin>, eval_loss_backward<SoftMargin>, {},
        {.compile_decompose = decompose_backward<SoftMargin, soft_margin_loss_backward>});
  t.add("aten.binary_cross_entropy_backward.default", fake_loss_backward<BinaryCrossEntropy>,
        eval_loss_backward<BinaryCrossEntropy>, {},
        {.compile_decompose = decompose_backward<BinaryCrossEntropy, binary_cross_entropy_backward>});
}

}  // namespace partita
