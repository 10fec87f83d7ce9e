// Elementwise losses with a reduction. Each consists of a function of (input, target) and its derivative.
#include <cmath>

#include "core/ops/families/loss.h"
#include "core/ops/families/lower_norm.h"
#include "core/ops/formula_functions.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/layout.h"
#include "core/ops/program.h"
#include "core/ops/promote.h"

namespace partita {

namespace {

using namespace kernels;

/// The losses: their value, and its derivative by x, as functions of x, y and one parameter (beta or delta; most have
/// none).
struct Mse {
  static constexpr const char* parameter = nullptr;
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
  static constexpr const char* parameter = "beta";
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
  static constexpr const char* parameter = "delta";
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
  static constexpr const char* parameter = nullptr;
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
  static constexpr const char* parameter = nullptr;
  template <class T>
  static T value(T x, T y, T) {
    return (y - T(1)) * std::max(std::log1p(-x), T(-100)) - y * std::max(std::log(x), T(-100));
  }
  template <class T>
  static T slope(T x, T y, T) {
    return (x - y) / std::max((T(1) - x) * x, T(1e-12));
  }
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

Meta fake_loss(FakeCall& c) {
  constexpr const char* tensors[] = {"self", "target", "weight", "pos_weight"};
  TensorMeta meta = elementwise(c, operands(c, tensors));
  if (static_cast<Reduction>(c.integer("reduction")) == Reduction::None) return meta;
  return new_like(meta, {});
}

Meta fake_loss_backward(FakeCall& c) {
  constexpr const char* tensors[] = {"self", "target", "weight", "grad_output"};
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

template <class Loss, class C>
double parameter(const C& c) {
  if constexpr (Loss::parameter != nullptr)
    return as_double(c.number(Loss::parameter));
  else
    return 0;
}

template <class Loss>
Value eval_loss(EvalCall& c) {
  Tensor out = allocate(c, fake_loss);
  DType dtype = evaluation_dtype(out.dtype);
  const Tensor* inputs[] = {&c.tensor("self"), &c.tensor("target"), optional(c, "weight")};
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
  Tensor out = allocate(c, fake_loss_backward);
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
  Tensor out = allocate(c, fake_loss);
  DType dtype = evaluation_dtype(out.dtype);
  const Tensor* inputs[] = {&c.tensor("self"), &c.tensor("target"), optional(c, "weight"), optional(c, "pos_weight")};
  Operands operands = broadcast_load(inputs, dtype);
  Tensor losses = empty(dtype, operands.sizes);
  return dispatch_floating(dtype, "binary_cross_entropy_with_logits", [&]<class T>() {
    auto at = [&](std::size_t k, std::int64_t i) { return operands.tensors[k].as<T>()[i]; };
    for (std::int64_t i : steps(operands.numel())) {
      T x = at(0, i), y = at(1, i);
      // Eager PyTorch calls one operator for each step, so half types round after each.
      auto step = [&](T v) { return rounded(out.dtype, v); };
      T logistic = step(std::log1p(std::exp(-std::abs(x))) + std::max(-x, T(0)));
      if (operands.tensors[3].storage) logistic = step(logistic * step(step(step(at(3, i) - T(1)) * y) + T(1)));
      T loss = step(step(step(T(1) - y) * x) + logistic);
      losses.as<T>()[i] = operands.tensors[2].storage ? step(loss * at(2, i)) : loss;
    }
    return reduce<T>(out, losses, static_cast<Reduction>(c.integer("reduction")));
  });
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
constexpr char binary_cross_entropy_with_logits[] =
    "logistic = log1p(exp(-abs(self))) + aten.clamp_min.default(-self, 0); "
    "positive = logistic if pos_weight is None else "
    "((pos_weight - 1) * target + 1) * logistic; "
    "losses = (1 - target) * self + positive; "
    "reduced(losses if weight is None else losses * weight, reduction)";
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

/// Runs a program over the call's arguments, cast to the dtype of the result, or to float32 for a half type,
/// unless PyTorch `rounds` half types after each step.
template <const char* program, bool rounds = false>
Arg decompose(DecomposeCall& c) {
  constexpr const char* tensors[] = {"self", "target", "weight", "pos_weight", "grad_output"};
  const DType result = elementwise(c, operands(c, tensors)).dtype, dtype = rounds ? result : opmath_dtype(result);
  std::vector<std::pair<std::string, Arg>> names;
  for (const char* name : tensors)
    if (c.schema.index_of(name) >= 0 && c.has(name) && c.tensor(name).dtype != dtype)
      names.emplace_back(name, c.build.call("aten._to_copy.default", {c.arg(name)}, {{"dtype", dtype}}));
  const Arg value = build_program(c, program, std::move(names));
  return dtype == result ? value : c.build.call("aten._to_copy.default", {value}, {{"dtype", result}});
}

}  // namespace

void register_pointwise_losses(OpTable& t) {
  t.add_formula_functions({{"weighted", weighted}});
  t.add("aten.mse_loss.default", fake_loss, eval_loss<Mse>,
        {{"self", "mse_loss_backward(grad, self, target, reduction)"},
         {"target", "mse_loss_backward(grad, target, self, reduction)"}},
        {.lower = lower_mse_loss});
  t.add("aten.smooth_l1_loss.default", fake_loss, eval_loss<SmoothL1>,
        {{"self", "smooth_l1_loss_backward(grad, self, target, reduction, beta)"},
         {"target", "smooth_l1_loss_backward(grad, target, self, reduction, beta)"}},
        {.compile_decompose = decompose<smooth_l1_loss>});
  t.add("aten.huber_loss.default", fake_loss, eval_loss<Huber>,
        {{"self", "huber_loss_backward(grad, self, target, reduction, delta)"},
         {"target", "huber_loss_backward(grad, target, self, reduction, delta)"}},
        {.compile_decompose = decompose<huber_loss>});
  t.add("aten.soft_margin_loss.default", fake_loss, eval_loss<SoftMargin>,
        {{"self", "soft_margin_loss_backward(grad, self, target, reduction)"}},
        {.compile_decompose = decompose<soft_margin_loss>});
  t.add("aten.binary_cross_entropy.default", fake_loss, eval_loss<BinaryCrossEntropy>,
        {{"self", "aten.binary_cross_entropy_backward.default(grad, self, target, weight, reduction)"},
         {"target",
          "weighted(aten.clamp.default(log(1.0 - self) - log(self), -100, 100) * grad, weight, self, reduction)"}},
        {.compile_decompose = decompose<binary_cross_entropy>});
  t.add("aten.binary_cross_entropy_with_logits.default", fake_loss, eval_bce_with_logits,
        {{"self",
          "t = None if pos_weight is None else pos_weight * target; "
          "weighted((sigmoid(self) - target if t is None else (t + 1 - target) * sigmoid(self) - t) * "
          "grad, weight, self, reduction)"},
         {"target",
          "p = None if pos_weight is None else aten.log_sigmoid.default(self); "
          "weighted(self * -grad if p is None else (aten.log_sigmoid.default(-self) - pos_weight * p) * "
          "grad, weight, self, reduction)"}},
        {.compile_decompose = decompose<binary_cross_entropy_with_logits, true>});

  t.add("aten.mse_loss_backward.default", fake_loss_backward, eval_loss_backward<Mse>,
        {{"grad_output", "grad * mse_loss_backward(ones_like(grad_output), self, target, reduction)"},
         {"self", "mse_loss_backward(grad_output, grad, zeros_like(grad), reduction)"},
         {"target", "-mse_loss_backward(grad_output, grad, zeros_like(grad), reduction)"}},
        {.lower = lower_mse_loss_backward});
  t.add("aten.smooth_l1_loss_backward.default", fake_loss_backward, eval_loss_backward<SmoothL1>, {},
        {.compile_decompose = decompose<smooth_l1_loss_backward>});
  t.add("aten.huber_loss_backward.default", fake_loss_backward, eval_loss_backward<Huber>, {},
        {.compile_decompose = decompose<huber_loss_backward>});
  t.add("aten.soft_margin_loss_backward.default", fake_loss_backward, eval_loss_backward<SoftMargin>, {},
        {.compile_decompose = decompose<soft_margin_loss_backward>});
  t.add("aten.binary_cross_entropy_backward.default", fake_loss_backward, eval_loss_backward<BinaryCrossEntropy>, {},
        {.compile_decompose = decompose<binary_cross_entropy_backward>});
}

}  // namespace partita
