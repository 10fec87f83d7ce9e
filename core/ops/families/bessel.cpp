#include "core/ops/families/bessel.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <boost/math/special_functions/airy.hpp>
#include <boost/math/special_functions/bessel.hpp>

#include "core/ops/families/boost_policy.h"

namespace partita::bessel {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();
/// From here on the asymptotic expansions are exact to double precision.
constexpr double far = 40;

/// The sum of (sign)^k a_k(order) / x^k (Abramowitz and Stegun, 9.7.1 and 9.7.2), until its terms no longer change it.
double asymptotic(int order, double x, double sign) {
  double mu = 4.0 * order * order, term = 1, sum = 1;
  for (int k = 1; k < 40 && std::fabs(term) > 1e-18; ++k) {
    double odd = 2 * k - 1;
    term *= sign * (mu - odd * odd) / (8 * k * x);
    sum += term;
  }
  return sum;
}

double scaled_i(int order, double x) {
  double a = std::fabs(x), sign = order % 2 && x < 0 ? -1 : 1;
  if (std::isnan(x)) return x;
  if (std::isinf(a)) return 0;
  if (a > far) return sign * asymptotic(order, a, -1) / std::sqrt(2 * std::numbers::pi * a);
  return sign * boost::math::cyl_bessel_i(order, a, Quiet()) * std::exp(-a);
}

double unscaled_i(int order, double x) {
  double a = std::fabs(x), sign = order % 2 && x < 0 ? -1 : 1;
  if (std::isnan(x)) return x;
  if (a > far) return std::isinf(a) ? sign * inf : scaled_i(order, x) * std::exp(a / 2) * std::exp(a / 2);
  return sign * boost::math::cyl_bessel_i(order, a, Quiet());
}

double k(int order, double x, bool scaled) {
  if (!(x >= 0)) return nan;
  if (x == 0) return inf;
  if (std::isinf(x)) return 0;
  if (x > far) {
    double value = asymptotic(order, x, 1) * std::sqrt(std::numbers::pi / (2 * x));
    return scaled ? value : value * std::exp(-x);
  }
  double value = boost::math::cyl_bessel_k(order, x, Quiet());
  return scaled ? value * std::exp(x) : value;
}

double j(int order, double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return 0;
  double value = boost::math::cyl_bessel_j(order, std::fabs(x), Quiet());
  return order % 2 && x < 0 ? -value : value;
}

double y(int order, double x) {
  if (!(x >= 0)) return nan;
  if (x == 0) return -inf;
  if (std::isinf(x)) return 0;
  return boost::math::cyl_neumann(order, x, Quiet());
}

}  // namespace

double j0(double x) {
  return j(0, x);
}
double j1(double x) {
  return j(1, x);
}
double y0(double x) {
  return y(0, x);
}
double y1(double x) {
  return y(1, x);
}
double i0(double x) {
  return unscaled_i(0, x);
}
double i1(double x) {
  return unscaled_i(1, x);
}
double i0e(double x) {
  return scaled_i(0, x);
}
double i1e(double x) {
  return scaled_i(1, x);
}
double k0(double x) {
  return k(0, x, false);
}
double k1(double x) {
  return k(1, x, false);
}
double k0e(double x) {
  return k(0, x, true);
}
double k1e(double x) {
  return k(1, x, true);
}
double airy_ai(double x) {
  if (!std::isfinite(x)) return nan;
  return boost::math::airy_ai(x, Quiet());
}
double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  return x == 0 ? 1 : std::sin(x) / x;
}

}  // namespace partita::bessel
