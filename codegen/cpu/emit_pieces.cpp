#include "codegen/cpu/emit_pieces.h"

#include <cmath>
#include <numbers>

namespace partita::codegen {
namespace {

/// Interpolates erf(x) / x in each piece at the zeros of a Chebyshev polynomial.
ErfPieces interpolated() {
  constexpr std::size_t n = ErfPieces::coefficients;
  ErfPieces p{};
  for (std::size_t k = 0; k < ErfPieces::pieces; ++k) {
    std::array<double, n> x{}, divided{}, power{};
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = ErfPieces::length / 2 * std::cos(std::numbers::pi * static_cast<double>(2 * i + 1) / (2.0 * n));
      const double at = static_cast<double>(k) * ErfPieces::length + x[i];
      divided[i] = at == 0 ? 2 * std::numbers::inv_sqrtpi : std::erf(at) / at;
    }
    for (std::size_t j = 1; j < n; ++j)
      for (std::size_t i = n - 1; i >= j; --i) divided[i] = (divided[i] - divided[i - 1]) / (x[i] - x[i - j]);
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = n - 1; j > 0; --j) power[j] = power[j - 1] - x[i] * power[j];
      power[0] = divided[i] - x[i] * power[0];
    }
    for (std::size_t j = 0; j < n; ++j) p.of_power[j][k] = static_cast<float>(power[j]);
  }
  return p;
}

}  // namespace

const ErfPieces& erf_pieces() {
  static const ErfPieces pieces = interpolated();
  return pieces;
}

}  // namespace partita::codegen
