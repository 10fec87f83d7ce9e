// Comparisons, logic and bits: one row for each overload. None is differentiable.
#include <limits>

#include "core/ops/families/body.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

#define F1(expression)   \
  body<[](In& in) {      \
    V x = in[0];         \
    return (expression); \
  }>
#define F2(expression)      \
  body<[](In& in) {         \
    V x = in[0], y = in[1]; \
    return (expression);    \
  }>

V truth(V x) {
  return x.as(DType::Bool);
}
V negative(V x) {
  return is_floating(x.dtype()) ? Copysign(x.constant(1), x) < 0.0 : x < 0.0;
}
V magnitude_is_inf(V x) {
  if (!is_floating(x.dtype()) && !is_complex(x.dtype())) return x != x;
  const V is_inf = Abs(x) == x.constant(inf);
  if (!is_complex(x.dtype())) return is_inf;
  // The magnitude of large finite parts is infinite, too; that of small ones is not.
  const V small = Abs(x * 0x1p-64);
  return is_inf && !(small - small == 0.0);
}
V is(V x, double value) {
  if (is_complex(x.dtype())) fail("isposinf and isneginf do not support complex inputs");
  return is_floating(x.dtype()) ? x == x.constant(value) : x != x;
}
V complement(V x) {
  if (is_floating(x.dtype()) || is_complex(x.dtype())) fail("bitwise_not is only implemented for integers and bool");
  return !x;
}

}  // namespace

void register_comparison(OpTable& t) {
  t.default_family = Family::Pointwise;
  auto row = [&](std::string_view name, Pointwise::Function f, Promotion promotion) {
    t.add(name, {.pointwise = {f, promotion}, .autograd = {.not_differentiable = true}});
  };
  struct Pair {
    std::string_view base;
    Pointwise::Function body;
  };
  const Pair comparisons[] = {{"aten.eq", F2(x == y)}, {"aten.ne", F2(x != y)}, {"aten.lt", F2(x < y)},
                              {"aten.le", F2(x <= y)}, {"aten.gt", F2(x > y)},  {"aten.ge", F2(x >= y)}};
  for (const Pair& p : comparisons)
    for (std::string_view overload : {".Tensor", ".Scalar"})
      row(std::string(p.base) + std::string(overload), p.body, Promotion::AlwaysBool);

  const Pair logic[] = {{"aten.logical_and.default", F2(truth(x) && truth(y))},
                        {"aten.logical_or.default", F2(truth(x) || truth(y))},
                        {"aten.logical_xor.default", F2(truth(x) != truth(y))},
                        {"aten.logical_not.default", F1(!truth(x))},
                        {"aten.isnan.default", F1(IsNan(x))},
                        {"aten.isinf.default", F1(magnitude_is_inf(x))},
                        {"aten.isposinf.default", F1(is(x, inf))},
                        {"aten.isneginf.default", F1(is(x, -inf))},
                        {"aten.signbit.default", F1(negative(x))},
                        {"prims.isfinite.default", F1(!(magnitude_is_inf(x) || IsNan(x)))}};
  for (const Pair& p : logic) row(p.base, p.body, Promotion::AlwaysBool);

  const Pair bits[] = {{"aten.bitwise_and", F2(BitAnd(x, y))},
                       {"aten.bitwise_or", F2(BitOr(x, y))},
                       {"aten.bitwise_xor", F2(BitXor(x, y))},
                       {"aten.bitwise_left_shift", F2(Shl(x, y))},
                       {"aten.bitwise_right_shift", F2(Shr(x, y))}};
  for (const Pair& p : bits) {
    row(std::string(p.base) + ".Tensor", p.body, Promotion::Default);
    row(std::string(p.base) + (p.base.ends_with("shift") ? ".Tensor_Scalar" : ".Scalar"), p.body, Promotion::Default);
    row(std::string(p.base) + ".Scalar_Tensor", p.body, Promotion::Default);
  }
  for (auto& [name, f] : {Pair{"aten.__lshift__", F2(Shl(x, y))}, Pair{"aten.__rshift__", F2(Shr(x, y))}})
    for (std::string_view overload : {".Tensor", ".Scalar"})
      row(std::string(name) + std::string(overload), f, Promotion::Default);
  row("aten.bitwise_not.default", F1(complement(x)), Promotion::Default);
}

#undef F1
#undef F2

}  // namespace partita
