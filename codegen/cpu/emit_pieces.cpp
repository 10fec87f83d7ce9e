#include "codegen/cpu/emit_pieces.h"

#include <cmath>
#include <numbers>

namespace partita::codegen {
namespace {

/// Interpolates f(x) / x in each piece at the zeros of a Chebyshev polynomial. `slope` is f's at 0.
OddPieces fitted(double (*f)(double), double slope, double one, int n) {
  OddPieces p = {one, one / (OddPieces::pieces - 0.6), n, {}};
  for (int k = 0; k < OddPieces::pieces; ++k) {
    std::array<double, OddPieces::most_coefficients> x{}, divided{}, power{};
    for (int i = 0; i < n; ++i) {
      x[i] = p.length / 2 * std::cos(std::numbers::pi * (2 * i + 1) / (2.0 * n));
      const double at = k * p.length + x[i];
      divided[i] = at == 0 ? slope : f(at) / at;
    }
    for (int j = 1; j < n; ++j)
      for (int i = n - 1; i >= j; --i) divided[i] = (divided[i] - divided[i - 1]) / (x[i] - x[i - j]);
    for (int i = n - 1; i >= 0; --i) {
      for (int j = n - 1; j > 0; --j) power[j] = power[j - 1] - x[i] * power[j];
      power[0] = divided[i] - x[i] * power[0];
    }
    for (int j = 0; j < n; ++j) p.of_power[j][k] = static_cast<float>(power[j]);
  }
  return p;
}

}  // namespace

const OddPieces& erf_pieces() {
  static const OddPieces pieces = fitted([](double x) { return std::erf(x); }, 2 * std::numbers::inv_sqrtpi, 3.92, 5);
  return pieces;
}

const OddPieces& tanh_pieces() {
  static const OddPieces pieces = fitted([](double x) { return std::tanh(x); }, 1, 9.011, 6);
  return pieces;
}

}  // namespace partita::codegen
