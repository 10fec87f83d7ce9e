#pragma once
#include <array>

namespace partita::codegen {

/// An odd function that rises from 0 to 1, as x times polynomials of |x|, one for each of 32 pieces of equal length.
/// AVX-512 picks the coefficients of 16 numbers by one instruction each.
struct OddPieces {
  static constexpr int pieces = 32, most_coefficients = 6;
  double one;     ///< from here on the function rounds to 1
  double length;  ///< piece k is what is nearest to k * length
  int coefficients;
  /// By power, then by piece, of |x| - k * length.
  std::array<std::array<float, pieces>, most_coefficients> of_power;
};

const OddPieces& erf_pieces();   ///< error below 1e-8 before rounding
const OddPieces& tanh_pieces();  ///< error below 1e-8 before rounding

}  // namespace partita::codegen
