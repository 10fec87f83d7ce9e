#pragma once
#include <array>

namespace partita::codegen {

/// erf(x) as x times polynomials of |x|, one for each of 32 pieces of equal length, until it rounds to 1. AVX-512 picks
/// a coefficient for 16 numbers by one instruction.
struct ErfPieces {
  static constexpr int pieces = 32, coefficients = 5;
  static constexpr double one = 3.92;                     ///< from here on erf rounds to 1
  static constexpr double length = one / (pieces - 0.6);  ///< piece k is what is nearest to k * length
  /// By power, then by piece, of |x| - k * length.
  std::array<std::array<float, pieces>, coefficients> of_power;
};

/// Before rounding, the relative error is below 1e-8.
const ErfPieces& erf_pieces();

}  // namespace partita::codegen
