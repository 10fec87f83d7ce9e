// Arithmetic: one row for each overload. Elementary functions and activations are in pointwise_unary.cpp and
// activation.cpp.
#include <limits>
#include <numbers>

#include "core/ops/families/body.h"
#include "core/ops/families/log_add_exp.h"
#include "core/ops/families/special.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/record.h"
#include "core/tensor/convert.h"

namespace partita {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

bool is_one(const FakeCall& call, std::string_view name) {
  const std::optional<Number> n = call.known_number(name);
  return n && std::visit([](auto v) { return v == decltype(v)(1); }, *n);
}
/// The factor comes first, as in PyTorch: the product of two large numbers may be infinite where a small one times
/// both is not.
V times_value(In& x, V v) {
  return is_one(x.call, "value") ? v : x.number("value") * v;
}

V times_alpha(In& x, V v) {
  return is_one(x.call, "alpha") ? v : v * x.kept(x.number("alpha"));
}

V add(In& x) {
  return x[0] + times_alpha(x, x[1]);
}
V sub(In& x) {
  return x[0] - times_alpha(x, x[1]);
}
V mul(In& x) {
  return x[0] * x[1];
}
V div(In& x) {
  return x[0] / x[1];
}

V div_mode(In& x) {
  if (!x.call.has("rounding_mode")) return div(x);
  std::string mode = x.call.string("rounding_mode");
  if (mode == "floor") return FloorDiv(x[0], x[1]);
  if (mode == "trunc")
    return is_floating(x[0].dtype()) ? Trunc(x.call.is_tensor("other") ? x.kept(div(x)) : div(x)) : div(x);
  fail("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '" + mode + "'");
}
Promotion div_mode_promotion(const FakeCall& call) {
  return call.has("rounding_mode") ? Promotion::Default : Promotion::IntToFloat;
}

/// Small powers are computed as products, as PyTorch's kernels do.
V pow_number(In& x) {
  V base = x[0];
  const bool inexact = is_floating(base.dtype()) || is_complex(base.dtype());  // exponents of integers are checked
  const std::optional<Number> known = inexact ? x.call.known_number("exponent") : x.call.number("exponent");
  if (!known) return Pow(base, x[1]);
  const auto* z = std::get_if<std::complex<double>>(&*known);
  const double e = as_double(*known);
  if ((z && z->imag() != 0) || x.call.is_tensor("exponent")) return Pow(base, x[1]);
  if (!inexact && e < 0) fail("Integers to negative integer powers are not allowed.");
  if (e == 2) return base * base;
  if (e == 3) return base * base * base;
  if (inexact && e == 0) return base.constant(1);
  if (inexact && e == 1) return base;
  if (inexact && e == 0.5) return Sqrt(base);
  if (inexact && e == -0.5) return is_complex(base.dtype()) ? 1.0 / Sqrt(base) : Rsqrt(base);
  if (inexact && e == -1) return 1.0 / base;
  if (inexact && e == -2) return 1.0 / (base * base);
  return Pow(base, x[1]);
}
/// All powers of the number 1 are 1, also those that are not numbers.
V power_of_number(In& x) {
  const std::optional<Number> base = x.call.known_number("self");
  const auto* z = base ? std::get_if<std::complex<double>>(&*base) : nullptr;
  const bool is_one = base && as_double(*base) == 1 && (!z || z->imag() == 0);
  return is_one ? x[1].constant(1) : Pow(x[0], x[1]);
}

/// x * logarithm; but 0 where x is 0, and NaN where y is NaN.
V x_times(V x, V y, V logarithm) {
  return where(IsNan(y), y, where(x == 0.0, x.constant(0), x * logarithm));
}
V xlogy(In& x) {
  return x_times(x[0], x[1], x.kept(Log(x[1])));
}
V xlog1py(In& x) {
  return x_times(x[0], x[1], x.kept(Log1p(x[1])));
}

/// log(e^a + e^b) in some base: `e` is its exponential, `l` its logarithm of 1 + x. Equal infinities give that
/// infinity.
template <auto e, auto l>
V log_add(In& x) {
  V hi = Max(x[0], x[1]), lo = Min(x[0], x[1]);
  return where((hi == lo) && (Abs(hi) == hi.constant(inf)), hi, hi + l(e(lo - hi)));
}
V exp(V v) {
  return Exp(v);
}
V exp2(V v) {
  return Exp2(v);
}
V log1p(V v) {
  return Log1p(v);
}
V log2_1p(V v) {
  return Log1p(v) * std::numbers::log2e;
}

/// The scalar body compares its operands, which complex numbers do not allow. Complex operands are evaluated here.
Value eval_logaddexp(EvalCall& call) {
  if (!is_complex(call.tensor("self").dtype) && !is_complex(call.tensor("other").dtype))
    return eval_pointwise(*ops().find(Op::torch(call.schema.name)), call);
  SpecialCall s(call);
  kernels::dispatch_inexact(s.computed.dtype, "logaddexp", [&]<class T>() {
    const T *a = s.inputs[0].as<T>(), *b = s.inputs[1].as<T>();
    if constexpr (is_complex_type<T>::value)
      for (std::int64_t i : steps(s.computed.numel()))
        s.computed.as<T>()[i] = static_cast<T>(
            kernels::log_add_exp(static_cast<std::complex<double>>(a[i]), static_cast<std::complex<double>>(b[i])));
  });
  return s.computed;
}

V hypot(In& x) {
  V a = Abs(x[0]), b = Abs(x[1]);
  V hi = Max(a, b), lo = Min(a, b), ratio = lo / hi;
  V length = hi * Sqrt(ratio * ratio + 1.0);
  return where(hi == 0.0, hi, where((a == a.constant(inf)) || (b == b.constant(inf)), hi.constant(inf), length));
}

V fmax(In& x) {
  return where(IsNan(x[0]), x[1], where(IsNan(x[1]), x[0], Max(x[0], x[1])));
}
V fmin(In& x) {
  return where(IsNan(x[0]), x[1], where(IsNan(x[1]), x[0], Min(x[0], x[1])));
}
V heaviside(In& x) {
  return where(x[0] == 0.0, x[1], where(x[0] > 0.0, 1.0, x[0].constant(0)));
}

/// Starts from the nearer end, so that weight 1 gives exactly `end`.
V lerp(In& x) {
  V self = x[0], end = x[1], weight = x[2], d = end - self;
  V near = is_complex(weight.dtype()) ? Abs(weight) : weight;
  if (is_complex(weight.dtype())) return self + weight * d;
  return where(Abs(near) < 0.5, self + weight * d, end - d * (1.0 - weight));
}

V clamp(In& x) {
  V v = x[0];
  if (!x.has(1) && !x.has(2)) fail("torch.clamp: At least one of 'min' or 'max' must not be None");
  if (x.has(1)) v = Max(v, x[1]);
  if (x.has(2)) v = Min(v, x[2]);
  return v;
}

V select(In& x) {
  return where(x.condition(), x[0], x[1]);
}

Meta fake_masked_fill(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& mask = call.tensor("mask");
  if (mask.dtype != DType::Bool)
    fail("masked_fill_ only supports boolean masks, but got mask with dtype " + std::string(torch_name(mask.dtype)));
  if (call.is_tensor("value") && call.tensor("value").dim() > 0)
    fail("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with " +
         std::to_string(call.tensor("value").dim()) + " dimension(s).");
  SymList sizes[] = {self.sizes, mask.sizes};
  return TensorMeta::contiguous(self.dtype, broadcast(call, sizes), self.device);
}

constexpr auto maximum = body<[](In& x) { return Max(x[0], x[1]); }>;
constexpr auto minimum = body<[](In& x) { return Min(x[0], x[1]); }>;

using Formulas = std::vector<Derivative>;

void binary(OpTable& t, std::string_view name, Pointwise::Function f, Formulas derivative,
            Promotion p = Promotion::Default) {
  t.add(name, {.pointwise = {f, p, {"self", "other"}}, .autograd = {.derivative = std::move(derivative)}});
}
void scaling(OpTable& t, std::string_view name, Pointwise::Function f, Formulas derivative,
             Promotion p = Promotion::Default) {
  t.add(name, {.pointwise = {.body = f, .promotion = p, .inputs = {"self", "other"}, .exact_numbers = true},
               .autograd = {.derivative = std::move(derivative)}});
}

void add_arithmetic(OpTable& t) {
  const Formulas quotient = {{"self", "aten.div.Tensor(grad, conj(other))"},
                             {"other", "-grad * conj((self / other) / other)"}};
  const Formulas divided = {{"self", "grad / conj(other)"}};
  binary(t, "aten.add.Tensor", body<add>, {{"self", "grad"}, {"other", "maybe_multiply(grad, conj(alpha))"}});
  binary(t, "aten.add.Scalar", body<add>, {{"self", "grad"}});
  binary(t, "aten.sub.Tensor", body<sub>, {{"self", "grad"}, {"other", "maybe_multiply(-grad, conj(alpha))"}});
  binary(t, "aten.sub.Scalar", body<sub>, {{"self", "grad"}});
  // rsub is sub with its operands exchanged, which decides the strides of the result, too.
  const auto exchanged = [&](std::string_view name, Formulas derivative) {
    t.add(name, {.pointwise = {.body = body<sub>, .inputs = {"other", "self"}},
                 .autograd = {.derivative = std::move(derivative)}});
  };
  exchanged("aten.rsub.Tensor", {{"self", "maybe_multiply(-grad, conj(alpha))"}, {"other", "grad"}});
  exchanged("aten.rsub.Scalar", {{"self", "maybe_multiply(-grad, conj(alpha))"}});
  // `other` may be a number; PyTorch's autograd calls the Tensor overload with it as well, so the formulas name that
  // overload.
  scaling(t, "aten.mul.Tensor", body<mul>,
          {{"self", "aten.mul.Tensor(grad, conj(other))"}, {"other", "aten.mul.Tensor(grad, conj(self))"}});
  scaling(t, "aten.mul.Scalar", body<mul>, {{"self", "grad * conj(other)"}});
  scaling(t, "aten.div.Tensor", body<div>, quotient, Promotion::IntToFloat);
  scaling(t, "aten.div.Scalar", body<div>, divided, Promotion::IntToFloat);
  scaling(t, "aten.true_divide.Tensor", body<div>, quotient, Promotion::IntToFloat);
  const Pointwise rounded_div = {
      .body = body<div_mode>, .inputs = {"self", "other"}, .exact_numbers = true, .promotion_of = div_mode_promotion};
  t.add("aten.div.Tensor_mode",
        {.pointwise = rounded_div,
         .autograd = {
             .derivative = {
                 {"self", "grad / conj(other) if rounding_mode is None else zeros_like(grad)"},
                 {"other", "-grad * conj((self / other) / other) if rounding_mode is None else zeros_like(grad)"}}}});
  t.add("aten.div.Scalar_mode",
        {.pointwise = rounded_div,
         .autograd = {.derivative = {{"self", "grad / conj(other) if rounding_mode is None else zeros_like(grad)"}}}});
  constexpr auto floor_div = body<[](In& x) { return FloorDiv(x[0], x[1]); }>;
  t.add("aten.floor_divide.default", {.pointwise = {.body = floor_div, .exact_numbers = true}});
  t.add("aten.floor_divide.Scalar", {.pointwise = {.body = floor_div, .exact_numbers = true}});
  constexpr auto fmod = body<[](In& x) { return Fmod(x[0], x[1]); }>;
  constexpr auto remainder = body<[](In& x) { return Remainder(x[0], x[1]); }>;
  const Derivative by_floor = {"other", "-grad * div(self, other, rounding_mode='floor')"};
  binary(t, "aten.fmod.Tensor", fmod, {{"self", "grad"}, {"other", "-grad * div(self, other, rounding_mode='trunc')"}});
  binary(t, "aten.fmod.Scalar", fmod, {{"self", "grad"}});
  binary(t, "aten.remainder.Tensor", remainder, {{"self", "grad"}, by_floor});
  binary(t, "aten.remainder.Scalar", remainder, {{"self", "grad"}});
  binary(t, "aten.remainder.Scalar_Tensor", remainder, {by_floor});
  t.add("prims.fma.default",
        {.pointwise =
             {body<[](In& x) { return is_floating(x[0].dtype()) ? Fma(x[0], x[1], x[2]) : x[0] * x[1] + x[2]; }>},
         .autograd = {.derivative = {{"a", "grad * conj(b)"}, {"b", "grad * conj(a)"}, {"c", "grad"}}}});
  t.add("aten.addcmul.default",
        {.pointwise = {body<[](In& x) { return x[0] + times_value(x, x[1]) * x[2]; }>},
         .autograd = {.derivative = {{"self", "grad"},
                                     {"tensor1", "grad * conj(maybe_multiply(tensor2, value))"},
                                     {"tensor2", "grad * conj(maybe_multiply(tensor1, value))"}}}});
  t.add("aten.addcdiv.default",
        {.pointwise = {body<[](In& x) { return x[0] + times_value(x, x[1]) / x[2]; }>},
         .autograd = {
             .derivative = {{"self", "grad"},
                            {"tensor1", "grad * conj(aten.fill.Scalar(tensor2, value) / tensor2)"},
                            {"tensor2", "-grad * conj(maybe_multiply(tensor1, value) / (tensor2 * tensor2))"}}}});
}

/// Powers and logarithms of two arguments.
void add_powers(OpTable& t) {
  constexpr auto pow = body<[](In& x) { return Pow(x[0], x[1]); }>;
  const Derivative pow_exponent = {"exponent", "pow_backward_exponent(grad, self, exponent, result)"};
  t.add("aten.pow.Tensor_Tensor",
        {.pointwise = {pow},
         .autograd = {.derivative = {{"self", "pow_backward_self(grad, self, exponent)"}, pow_exponent}}});
  t.add("aten.pow.Tensor_Scalar", {.pointwise = {body<pow_number>},
                                   .autograd = {.derivative = {{"self", "pow_backward(grad, self, exponent)"}}}});
  t.add("aten.pow.Scalar",
        {.pointwise = {.body = body<power_of_number>, .row_major = true}, .autograd = {.derivative = {pow_exponent}}});
  const Derivative log_self = {"self",
                               "masked_fill(xlogy(grad, other), logical_and(eq(self, 0.0), le(other, 0.0)), 0.0)"};
  const Derivative log_other = {"other", "grad * self / other"};
  binary(t, "aten.xlogy.Tensor", body<xlogy>, {log_self, log_other}, Promotion::IntToFloat);
  binary(t, "aten.xlogy.Scalar_Other", body<xlogy>, {{"self", "xlogy_backward_self(grad, self, other)"}},
         Promotion::IntToFloat);
  binary(t, "aten.xlogy.Scalar_Self", body<xlogy>, {log_other}, Promotion::IntToFloat);
  binary(t, "aten.special_xlog1py.default", body<xlog1py>,
         {{"self", "masked_fill(special_xlog1py(grad, other), logical_and(eq(self, 0.0), le(other, -1.0)), 0.0)"},
          {"other", "grad * self / (other + 1)"}},
         Promotion::IntToFloat);
  t.add("aten.logaddexp.default", {.eval = eval_logaddexp,
                                   .pointwise = {body<log_add<exp, log1p>>, Promotion::IntToFloat, {"self", "other"}},
                                   .autograd = {.derivative = {{"self", "grad / conj(exp(other - self) + 1)"},
                                                               {"other", "grad / conj(exp(self - other) + 1)"}}}});
  binary(t, "aten.logaddexp2.default", body<log_add<exp2, log2_1p>>,
         {{"self", "grad / (pow(2, other - self) + 1)"}, {"other", "grad / (pow(2, self - other) + 1)"}},
         Promotion::IntToFloat);
}

/// Geometry and order.
void add_orders(OpTable& t) {
  binary(t, "aten.atan2.default", body<[](In& x) { return Atan2(x[0], x[1]); }>,
         {{"self", "s = self * self + other * other; grad * other * masked_fill(reciprocal(s), eq(s, 0), 0)"},
          {"other", "s = self * self + other * other; grad * -self * masked_fill(reciprocal(s), eq(s, 0), 0)"}},
         Promotion::IntToFloat);
  binary(t, "aten.hypot.default", body<hypot>, {{"self", "grad * self / result"}, {"other", "grad * other / result"}});
  constexpr auto copysign = body<[](In& x) { return Copysign(x[0], x[1]); }>;
  binary(t, "aten.copysign.Tensor", copysign,
         {{"self", "grad * masked_fill(result / self, eq(self, 0), 0)"}, {"other", "zeros_like(grad)"}},
         Promotion::IntToFloat);
  binary(t, "aten.copysign.Scalar", copysign, {{"self", "grad * masked_fill(result / self, eq(self, 0), 0)"}},
         Promotion::IntToFloat);
  binary(t, "aten.nextafter.default", body<[](In& x) { return Nextafter(x[0], x[1]); }>,
         {{"self", "where(ne(self, other), grad, 0)"}, {"other", "zeros_like(grad)"}});
  t.add("aten.heaviside.default", {.pointwise = {body<heaviside>}});  // PyTorch has no formula either
  binary(t, "aten.maximum.default", maximum,
         {{"self", "masked_fill(where(eq(self, other), grad / 2, grad), lt(self, other), 0)"},
          {"other", "masked_fill(where(eq(self, other), grad / 2, grad), gt(self, other), 0)"}});
  binary(t, "aten.minimum.default", minimum,
         {{"self", "masked_fill(where(eq(self, other), grad / 2, grad), gt(self, other), 0)"},
          {"other", "masked_fill(where(eq(self, other), grad / 2, grad), lt(self, other), 0)"}});
  binary(t, "aten.fmax.default", body<fmax>,
         {{"self", "masked_fill(grad, logical_not(logical_or(ge(self, other), isnan(other))), 0)"},
          {"other", "masked_fill(grad, logical_or(ge(self, other), isnan(other)), 0)"}});
  binary(t, "aten.fmin.default", body<fmin>,
         {{"self", "masked_fill(grad, logical_not(logical_or(le(self, other), isnan(other))), 0)"},
          {"other", "masked_fill(grad, logical_or(le(self, other), isnan(other)), 0)"}});
}

/// What lies between two values, and choices by a mask.
void add_choices(OpTable& t) {
  for (std::string_view name : {"aten.clamp.default", "aten.clamp.Tensor"})
    t.add(name, {.pointwise = {body<clamp>},
                 .autograd = {.derivative = {{"self",
                                              "where(le(self, max), grad, 0.0) if min is None else "
                                              "where(ge(self, min), grad, 0.0) if max is None else "
                                              "where(logical_and(ge(self, min), le(self, max)), grad, 0.0)"},
                                             {"min",
                                              "where(lt(self, min), grad, 0.0) if max is None else "
                                              "where(logical_and(lt(min, max), lt(self, min)), grad, 0.0)"},
                                             {"max",
                                              "where(gt(self, max), grad, 0.0) if min is None else "
                                              "where(logical_or(gt(self, max), lt(max, min)), grad, 0.0)"}}}});
  for (std::string_view name : {"aten.clamp_min.default", "aten.clamp_min.Tensor"})
    t.add(name, {.pointwise = {maximum},
                 .autograd = {.derivative = {{"self", "where(ge(self, min), grad, 0.0)"},
                                             {"min", "where(lt(self, min), grad, 0.0)"}}}});
  for (std::string_view name : {"aten.clamp_max.default", "aten.clamp_max.Tensor"})
    t.add(name, {.pointwise = {minimum},
                 .autograd = {.derivative = {{"self", "where(le(self, max), grad, 0.0)"},
                                             {"max", "where(gt(self, max), grad, 0.0)"}}}});
  t.add("aten.lerp.Tensor", {.pointwise = {body<lerp>},
                             .autograd = {.derivative = {{"self", "grad * conj(rsub(weight, 1))"},
                                                         {"end", "grad * conj(weight)"},
                                                         {"weight", "grad * conj(end - self)"}}}});
  t.add("aten.lerp.Scalar", {.pointwise = {.body = body<lerp>, .exact_numbers = true},
                             .autograd = {.derivative = {{"self", "aten.mul.Scalar(grad, one_minus(conj(weight)))"},
                                                         {"end", "aten.mul.Scalar(grad, conj(weight))"}}}});

  t.add("aten.where.self",
        {.pointwise = {body<select>, Promotion::Default, {"self", "other"}, "condition"},
         .autograd = {.derivative = {{"self", "where(condition, grad, 0)"}, {"other", "where(condition, 0, grad)"}}}});
  t.add("aten.masked_fill.Scalar",
        {.fake = fake_masked_fill,
         .pointwise = {body<[](In& x) { return where(x.condition(), x.number("value"), x[0]); }>,
                       Promotion::Default,
                       {"self"},
                       "mask"},
         .autograd = {.derivative = {{"self", "masked_fill(grad, mask, 0)"}}}});
  t.add("aten.masked_fill.Tensor",
        {.fake = fake_masked_fill,
         .pointwise = {body<[](In& x) { return where(x.condition(), x[1], x[0]); }>,
                       Promotion::Default,
                       {"self", "value"},
                       "mask"},
         .autograd = {.derivative = {{"self", "masked_fill(grad, mask, 0)"}, {"value", "sum(where(mask, grad, 0))"}}}});
}

}  // namespace

void register_pointwise(OpTable& t) {
  t.default_family = Family::Pointwise;
  add_arithmetic(t);
  add_powers(t);
  add_orders(t);
  add_choices(t);
}

}  // namespace partita
