// Elementary functions of one argument: one row for each overload.
#include <limits>
#include <numbers>

#include "core/ops/families/body.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

struct UnaryRow {
  std::string_view name;
  Pointwise::Function body;
  Promotion promotion;
  std::string_view derivative;  ///< formula of self's gradient; empty: it has none
};

#define F(expression)    \
  body<[](In& in) {      \
    V x = in[0];         \
    return (expression); \
  }>

V round_decimals(In& in) {
  std::int64_t decimals = in.call.integer("decimals");
  V ten = in.constant(std::pow(10.0, std::abs(static_cast<double>(decimals))));
  return decimals < 0 ? Round(in[0] / ten) * ten : Round(in[0] * ten) / ten;
}

V nan_to_num(In& in) {
  V x = in[0];
  if (!is_floating(x.dtype())) return x;
  DType stored = in.call.tensor("self").dtype;
  double largest = stored == DType::Float16    ? 65504.0
                   : stored == DType::BFloat16 ? 3.3895313892515355e38
                   : stored == DType::Float64  ? std::numeric_limits<double>::max()
                                               : std::numeric_limits<float>::max();
  auto value = [&](std::string_view name, double otherwise) {
    return in.call.has(name) ? in.number(name) : in.constant(otherwise);
  };
  V above = where(x == in.constant(infinite), value("posinf", largest), x);
  return where(IsNan(x), value("nan", 0), where(x == in.constant(-infinite), value("neginf", -largest), above));
}

/// A negative eps counts as none given.
bool has_eps(const In& in) {
  return in.call.has("eps") && as_double(in.call.number("eps")) >= 0;
}

V logit(In& in) {
  V x = in[0];
  if (has_eps(in)) {
    V eps = in.number("eps");
    x = Min(Max(x, eps), 1.0 - eps);
  }
  return Log(in.kept(x / in.kept(1.0 - x)));
}

V logit_backward(In& in) {
  V grad = in[0], x = in[1], zero = in.constant(0), slope = grad / (x * (1.0 - x));
  if (has_eps(in)) {
    V eps = in.number("eps");
    return where((x >= eps) && (x <= 1.0 - eps), slope, zero);
  }
  return where((x < 0.0) || (x > 1.0), in.constant(std::numeric_limits<double>::quiet_NaN()), slope);
}

/// Near 1, in double, erf no longer tells neighbours apart: the last Newton steps are by its complement.
V erfinv(In& in) {
  V x = in[0], y = Erfinv(x);
  if (x.dtype() != DType::Float64) return y;
  V a = Abs(x), size = Abs(y);
  for (int step = 0; step < 3; ++step)
    size = size + (Erfc(size) - (1.0 - a)) * Exp(size * size) * (std::sqrt(std::numbers::pi) / 2);
  return where((a > 0.5) && (a < 1.0), Copysign(size, x), y);
}

V entropy(V x) {
  return where(IsNan(x), x, where(x > 0.0, -x * Log(x), where(x == 0.0, x.constant(0), x.constant(-infinite))));
}

}  // namespace

void register_pointwise_unary(OpTable& t) {
  t.default_family = Family::Pointwise;
  using enum Promotion;
  constexpr std::string_view flat = "zeros_like(grad)";
  const UnaryRow rows[] = {
      {"aten.neg.default", F(-x), Default, "neg(grad)"},
      {"aten.abs.default", F(Abs(x)), ComplexToFloat, "grad * sgn(self)"},
      {"aten.sign.default", F(Sign(x)), Default, flat},
      {"aten.sgn.default", F(Sign(x)), Default, "sgn_backward(self, grad, result)"},
      {"aten.reciprocal.default", F(1.0 / x), IntToFloat, "-grad * conj(result * result)"},
      {"aten.sqrt.default", F(Sqrt(x)), IntToFloat, "grad / conj(2 * result)"},
      {"aten.rsqrt.default", F(is_complex(x.dtype()) ? 1.0 / Sqrt(x) : Rsqrt(x)), IntToFloat,
       "-0.5 * grad * conj(pow(result, 3))"},
      {"aten.exp.default", F(Exp(x)), IntToFloat, "grad * conj(result)"},
      {"aten.exp2.default", F(Exp2(x)), IntToFloat, "grad * conj(result) * 0.6931471805599453"},
      {"aten.expm1.default", F(Expm1(x)), IntToFloat, "grad * (conj(result) + 1)"},
      {"aten.log.default", F(Log(x)), IntToFloat, "grad / conj(self)"},
      {"aten.log2.default", F(Log2(x)), IntToFloat, "grad / (conj(self) * 0.6931471805599453)"},
      {"aten.log10.default", F(Log10(x)), IntToFloat, "grad / (conj(self) * 2.302585092994046)"},
      {"aten.log1p.default", F(Log1p(x)), IntToFloat, "grad / conj(self + 1)"},
      {"aten.sin.default", F(Sin(x)), IntToFloat, "grad * conj(cos(self))"},
      {"aten.cos.default", F(Cos(x)), IntToFloat, "grad * conj(-sin(self))"},
      {"aten.tan.default", F(Tan(x)), IntToFloat, "grad * conj(1 + pow(result, 2))"},
      {"aten.asin.default", F(Asin(x)), IntToFloat, "grad * conj(rsqrt(-self * self + 1))"},
      {"aten.acos.default", F(Acos(x)), IntToFloat, "grad * conj(-rsqrt(-self * self + 1))"},
      {"aten.atan.default", F(Atan(x)), IntToFloat, "grad / conj(self * self + 1)"},
      {"aten.sinh.default", F(Sinh(x)), IntToFloat, "grad * conj(cosh(self))"},
      {"aten.cosh.default", F(Cosh(x)), IntToFloat, "grad * conj(sinh(self))"},
      {"aten.tanh.default", F(Tanh(x)), IntToFloat, "tanh_backward(grad, result)"},
      {"aten.asinh.default", F(Asinh(x)), IntToFloat, "grad * conj(rsqrt(pow(self, 2) + 1))"},
      {"aten.acosh.default", F(Acosh(x)), IntToFloat,
       "grad * conj(rsqrt(self + 1) * rsqrt(self - 1)) if is_complex(self) else grad * rsqrt(self * self - 1)"},
      {"aten.atanh.default", F(Atanh(x)), IntToFloat, "grad * 1 / conj(1 - pow(self, 2))"},
      {"aten.sigmoid.default", F(Sigmoid(x)), IntToFloat, "sigmoid_backward(grad, result)"},
      {"aten.erf.default", F(Erf(x)), IntToFloat, "1.1283791670955126 * exp(-pow(self, 2)) * grad"},
      {"aten.erfc.default", F(Erfc(x)), IntToFloat, "-1.1283791670955126 * exp(-pow(self, 2)) * grad"},
      {"aten.erfinv.default", body<erfinv>, IntToFloat, "0.8862269254527579 * exp(pow(erfinv(self), 2)) * grad"},
      {"aten.lgamma.default", F(Lgamma(x)), IntToFloat, "grad * digamma(self)"},
      {"aten.digamma.default", F(Digamma(x)), IntToFloat, "grad * polygamma(1, self)"},
      {"aten.floor.default", F(Floor(x)), Default, flat},
      {"aten.ceil.default", F(Ceil(x)), Default, flat},
      {"aten.trunc.default", F(Trunc(x)), Default, flat},
      {"aten.round.default", F(Round(x)), Default, flat},
      {"aten.round.decimals", body<round_decimals>, Default, flat},
      {"aten.frac.default", F(x - Trunc(x)), Default, "grad"},
      {"aten.deg2rad.default", F(x * (std::numbers::pi / 180)), IntToFloat, "grad * 0.017453292519943295"},
      {"aten.rad2deg.default", F(x * (180 / std::numbers::pi)), IntToFloat, "grad * 57.29577951308232"},
      {"aten.sinc.default", F(where(x == 0.0, x.constant(1), Sin(x * std::numbers::pi) / (x * std::numbers::pi))),
       IntToFloat,
       "p = self * 3.141592653589793; q = self * p; masked_fill(grad * conj((cos(p) * p - sin(p)) / q), eq(q, 0.0), "
       "0)"},
      {"aten.nan_to_num.default", body<nan_to_num>, Default,
       "grad * logical_not(logical_or(isinf(self), isnan(self)))"},
      {"aten.logit.default", body<logit>, IntToFloat, "logit_backward(grad, self, eps)"},
      {"aten.special_entr.default", F(entropy(x)), IntToFloat, "grad * (-(log(self) + 1))"},
  };
  for (const UnaryRow& row : rows) {
    OpRecord record{.pointwise = {row.body, row.promotion}};
    if (!row.derivative.empty()) record.autograd.derivative = {{"self", row.derivative}};
    t.add(row.name, std::move(record));
  }
  t.add("aten.logit_backward.default", {.pointwise = {body<logit_backward>}});
}

#undef F

}  // namespace partita
