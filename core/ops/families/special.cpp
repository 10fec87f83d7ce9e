// Special functions: one row for each overload.
#include "core/ops/families/special.h"

#include <fmt/format.h>

#include "core/ops/families/bessel.h"
#include "core/ops/families/gamma.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

struct SpecialRow {
  std::string_view name;
  Value (*eval)(EvalCall&);
  std::vector<Derivative> derivative = {};
};

/// Applies a function of doubles to elements of type T, which is float or double.
template <auto f>
constexpr auto unary = []<class T>(T x) -> T { return static_cast<T>(f(static_cast<double>(x))); };
template <auto f>
constexpr auto binary =
    []<class T>(T x, T y) -> T { return static_cast<T>(f(static_cast<double>(x), static_cast<double>(y))); };
template <auto f>
constexpr auto one = eval_special<unary<f>>;
template <auto f>
constexpr auto two = eval_special<binary<f>>;

Value eval_polygamma(EvalCall& call) {
  std::int64_t n = call.integer("n");
  if (n < 0) fail("polygamma(n, x) does not support negative n.");
  return each_element(call, [n]<class T>(T x) { return gamma::polygamma(static_cast<int>(n), x); });
}

/// The number of its terms, each of which is a call in the gradient.
std::int64_t mvlgamma_terms(const auto& call, std::int64_t most) {
  const std::int64_t p = call.integer("p");
  if (p < 1) fail("p has to be greater than or equal to 1");
  if (p > most) fail_unsupported(fmt::format("{} of {} terms; at most {} are computed", call.schema.name, p, most));
  return p;
}

Meta fake_mvlgamma(FakeCall& call) {
  mvlgamma_terms(call, 1 << 20);
  return fake_special(call);
}

Value eval_mvlgamma(EvalCall& call) {
  const std::int64_t p = call.integer("p");
  return each_element(call,
                      [p]<class T>(T x) { return static_cast<T>(gamma::multivariate_lgamma(x, static_cast<int>(p))); });
}

/// The derivative is the sum of digamma(self - j / 2) for j below p.
std::vector<Node*> mvlgamma_gradient(GradCall& call) {
  Arg sum;
  for (std::int64_t j = 0, p = mvlgamma_terms(call, 1 << 12); j < p; ++j) {
    std::vector<std::pair<std::string, Arg>> names = {
        {"x", call.arg("self")}, {"half", Arg(static_cast<double>(j) / 2)}, {"sum", sum}};
    sum = call.build.expression(j == 0 ? "digamma(x)" : "sum + digamma(x - half)", names);
  }
  return gradient_of_first(call, call.build.call("aten.mul.Tensor", {call.grads[0], sum}));
}

/// The derivatives of i1 and i1e contain a quotient by self; near 0 their value is 1/2.
constexpr std::string_view i1_slope =
    "grad * where(gt(abs(self), 2.220446049250313e-16), i0(self) - result / self, 0.5)";
constexpr std::string_view i1e_slope =
    "grad * where(gt(abs(self), 2.220446049250313e-16), special_i0e(self) - result * (sgn(self) + reciprocal(self)), "
    "0.5)";

}  // namespace

void register_special(OpTable& t) {
  t.default_family = Family::Pointwise;
  const std::vector<Derivative> by_q = {{"other", "grad * -self * special_zeta(self + 1, other)"}};
  const SpecialRow rows[] = {
      {"aten.i0.default", one<bessel::i0>, {{"self", "grad * special_i1(self)"}}},
      {"aten.special_i0e.default", eval_i0e, {{"self", "grad * (special_i1e(self) - sgn(self) * result)"}}},
      {"aten.special_i1.default", one<bessel::i1>, {{"self", i1_slope}}},
      {"aten.special_i1e.default", one<bessel::i1e>, {{"self", i1e_slope}}},
      {"aten.special_bessel_j0.default", one<bessel::j0>},
      {"aten.special_bessel_j1.default", one<bessel::j1>},
      {"aten.special_bessel_y0.default", one<bessel::y0>},
      {"aten.special_bessel_y1.default", one<bessel::y1>},
      {"aten.special_modified_bessel_i0.default", one<bessel::i0>},
      {"aten.special_modified_bessel_i1.default", one<bessel::i1>},
      {"aten.special_modified_bessel_k0.default", one<bessel::k0>},
      {"aten.special_modified_bessel_k1.default", one<bessel::k1>},
      {"aten.special_scaled_modified_bessel_k0.default", one<bessel::k0e>},
      {"aten.special_scaled_modified_bessel_k1.default", one<bessel::k1e>},
      {"aten.special_spherical_bessel_j0.default", one<bessel::spherical_j0>},
      {"aten.special_airy_ai.default", one<bessel::airy_ai>},
      {"aten.special_erfcx.default",
       one<gamma::erfcx>,
       {{"self", "(2.0 * self * result - 1.1283791670955126) * grad"}}},
      {"aten.special_log_ndtr.default",
       eval_special<[]<class T>(T x) { return gamma::log_ndtr(x); }>,
       {{"self", "grad * (exp(-(result + pow(self, 2) / 2)) / 2.5066282746310002)"}}},
      {"aten.special_ndtri.default",
       one<gamma::ndtri>,
       {{"self", "grad * 2.5066282746310002 * exp(result * result / 2)"}}},
      {"aten.igamma.default",
       two<gamma::lower>,
       {{"other", "grad * exp((self - 1) * log(other) - other - lgamma(self))"}}},
      {"aten.igammac.default",
       two<gamma::upper>,
       {{"other", "-grad * exp((self - 1) * log(other) - other - lgamma(self))"}}},
      {"aten.special_zeta.default", two<gamma::zeta>, by_q},
      {"aten.special_zeta.other_scalar", two<gamma::zeta>},
      {"aten.special_zeta.self_scalar", two<gamma::zeta>, by_q},
  };
  for (const SpecialRow& row : rows) {
    bool promotes = !row.name.starts_with("aten.igamma");
    t.add(row.name, fake_special, row.eval, row.derivative,
          {.pointwise = {.promotion = promotes ? Promotion::IntToFloat : Promotion::Default}});
  }
  t.add("aten.polygamma.default", fake_special, eval_polygamma, {{"self", "grad * polygamma(n + 1, self)"}},
        {.pointwise = {.promotion = Promotion::IntToFloat}});
  t.add("aten.mvlgamma.default", fake_mvlgamma, eval_mvlgamma, {},
        {.pointwise = {.promotion = Promotion::IntToFloat, .row_major = true},
         .autograd = {.gradient = mvlgamma_gradient}});
}

}  // namespace partita
