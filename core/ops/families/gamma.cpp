#include "core/ops/families/gamma.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>

#include "core/base/progress.h"
#include "core/loops/scalar_math.h"
#include "core/ops/families/boost_policy.h"
#include "core/ops/record/loop_budget.h"

namespace partita::gamma {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// The Bernoulli numbers B_2, B_4, ...
constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,       -1.0 / 30,
                                5.0 / 66,      -691.0 / 2730,   7.0 / 6,        -3617.0 / 510,
                                43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};

/// Handles arguments at the edge of the domain: sets `value` to P(a, x) if `lower`, else to Q(a, x). Returns false for
/// arguments inside the domain.
bool at_edge(double a, double x, bool lower, double& value) {
  double zero = lower ? 0 : 1, one = 1 - zero;
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0)
    value = nan;
  else if (a == 0)
    value = x > 0 ? one : nan;
  else if (x == 0)
    value = zero;
  else if (std::isinf(a))
    value = std::isinf(x) ? nan : zero;
  else if (std::isinf(x))
    value = one;
  else
    return false;
  return true;
}

}  // namespace

/// Applies the recurrence six times, then the asymptotic series (Abramowitz and Stegun, 6.4.12). Below 1/2 it uses the
/// reflection formula (6.4.7).
template <class T>
T trigamma(T x) {
  if (x < T(0.5)) {
    T scaled = std::numbers::pi_v<T> / std::sin(std::numbers::pi_v<T> * x);
    return scaled * scaled - trigamma(1 - x);
  }
  T sum = 0;
  for (int i = 0; i < 6; ++i, ++x) sum += 1 / (x * x);
  T square = 1 / (x * x), power = 1 / x, tail = power + square / 2;
  for (int k = 0; k < 8; ++k) tail += static_cast<T>(bernoulli[k]) * (power *= square);
  return sum + tail;
}

template <class T>
T polygamma(int n, T x) {
  if (n == 0) return loops::device::digamma(x);
  if (n == 1) return trigamma(x);
  return static_cast<T>((n % 2 ? 1 : -1) * std::exp(std::lgamma(n + 1.0)) * zeta(n + 1, static_cast<double>(x)));
}
template float polygamma(int, float);
template double polygamma(int, double);

/// At least ten terms of the sum, then twelve terms of Euler and Maclaurin's remainder (as zeta in Cephes).
double zeta(double x, double q) {
  if (x == 1) return inf;
  if (!(x > 1) || std::isnan(q)) return nan;
  if (q <= 0) {
    if (q == std::floor(q)) return inf;
    if (x != std::floor(x)) return nan;
  }
  if (q < 9) LoopBudget::spend(static_cast<std::int64_t>(9 - q));  // q is no whole number below 0, so above -2^52
  double sum = std::pow(q, -x), term = 0;
  for (int i = 0; i < 9 || q <= 9; ++i) {
    term = std::pow(++q, -x);
    sum += term;
    if (std::fabs(term) < epsilon * std::fabs(sum)) return sum;
  }
  sum += term * q / (x - 1) - term / 2;
  // Term k of the remainder is B_2k / (2k)! x (x + 1) ... (x + 2k - 2) q^(1 - x - 2k).
  double factor = x * term / q;
  for (int k = 1; k <= 12; ++k) {
    factor /= k == 1 ? 2 : (2.0 * k - 1) * (2.0 * k);
    double part = bernoulli[k - 1] * factor;
    sum += part;
    if (std::fabs(part) < epsilon * std::fabs(sum)) break;
    factor *= (x + 2 * k - 1) * (x + 2 * k) / (q * q);
  }
  return sum;
}

double lower(double a, double x) {
  double value;
  return at_edge(a, x, true, value) ? value : boost::math::gamma_p(a, x, Quiet());
}
double upper(double a, double x) {
  double value;
  return at_edge(a, x, false, value) ? value : boost::math::gamma_q(a, x, Quiet());
}

double multivariate_lgamma(double x, int p) {
  double sum = static_cast<double>(p) * (p - 1) / 4.0 * std::log(std::numbers::pi);
  for (std::int64_t j : steps(p)) sum += std::lgamma(x - static_cast<double>(j) / 2);
  return sum;
}

/// Below 10 the product of exp and erfc. From there on erfc would underflow, so the asymptotic series is used
/// (Abramowitz and Stegun, 7.1.23).
double erfcx(double x) {
  if (x < 10) return std::exp(x * x) * std::erfc(x);
  double square = 2 * x * x, term = 1, sum = 1;
  for (int k = 1; k < 40 && std::fabs(term) > 1e-18; ++k) sum += term *= -(2 * k - 1) / square;
  return sum / (x * std::sqrt(std::numbers::pi));
}

template <class T>
T log_ndtr(T x) {
  const T t = x * (1 / std::numbers::sqrt2_v<T>);
  if (x < -1) return std::log(static_cast<T>(erfcx(static_cast<double>(-t))) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}
template float log_ndtr(float);
template double log_ndtr(double);

double ndtri(double p) {
  if (p == 0) return -inf;
  if (p == 1) return inf;
  if (!(p > 0 && p < 1)) return nan;
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * p, Quiet());
}

}  // namespace partita::gamma
