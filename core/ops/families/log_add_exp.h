#pragma once
// log(e^a + e^b), as in PyTorch's LogAddExp.h.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

namespace partita::kernels {

/// Propagates NaN. Equal infinities give that infinity.
inline double log_add_exp(double a, double b) {
  if (a != a || b != b) return a + b;
  const double high = std::max(a, b), low = std::min(a, b);
  return std::isinf(high) && high == low ? high : high + std::log1p(std::exp(low - high));
}

/// The larger operand is that with the larger real part. If both real parts are -inf, the result is one of the
/// operands.
inline std::complex<double> log_add_exp(std::complex<double> a, std::complex<double> b) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::complex<double>& z : {a, b})
    if (std::isnan(z.real()) || std::isnan(z.imag())) return {nan, nan};
  const auto [low, high] = a.real() < b.real() ? std::pair(a, b) : std::pair(b, a);
  if (std::isinf(low.real()) && low.real() == high.real())
    return low.real() < 0 ? low : std::log(std::exp(low) + std::exp(high));
  const std::complex<double> ratio = std::isinf(low.real()) ? 0.0 : std::exp(low - high);
  // log(1 + z) without cancellation for small z: its real part is half the logarithm of |1 + z|^2.
  const double x = ratio.real(), y = ratio.imag();
  return high + std::complex<double>(0.5 * std::log1p(x * (2 + x) + y * y), std::atan2(y, 1 + x));
}

}  // namespace partita::kernels
