#include "core/tensor/float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace partita {
namespace {

struct Format {
  int mantissa;  ///< bits
  int least;     ///< exponent of the least normal number
  int overflow;  ///< the bits of what is too large
  int infinity;  ///< 0x80: there is none
};

Format format_of(DType t) {
  return t == DType::Float8E4M3FN ? Format{3, -6, 0x7e, 0x80} : Format{2, -14, 0x7c, 0x7c};
}

constexpr int nan_bits = 0x7f;

}  // namespace

bool is_float8(DType t) {
  return t == DType::Float8E4M3FN || t == DType::Float8E5M2;
}

float from_float8(std::uint8_t bits, DType t) {
  const Format f = format_of(t);
  const int magnitude = bits & 0x7f, exponent = magnitude >> f.mantissa, hidden = 1 << f.mantissa;
  float v = std::ldexp(static_cast<float>(exponent == 0 ? magnitude : magnitude % hidden + hidden),
                       f.least - f.mantissa + std::max(exponent - 1, 0));
  if (magnitude == f.infinity)
    v = std::numeric_limits<float>::infinity();
  else if (magnitude > f.infinity || magnitude == nan_bits)
    v = std::numeric_limits<float>::quiet_NaN();
  return bits & 0x80 ? -v : v;
}

std::uint8_t to_float8(float v, DType t) {
  const Format f = format_of(t);
  int bits = nan_bits;
  if (!std::isnan(v)) {
    const float magnitude = std::min(std::abs(v), 0x1p20f);
    const int exponent = magnitude == 0 ? f.least : std::max(std::ilogb(magnitude), f.least);
    const int rounded = static_cast<int>(std::nearbyint(std::ldexp(magnitude, f.mantissa - exponent)));
    bits = std::min(((exponent - f.least) << f.mantissa) + rounded, f.overflow);
  }
  return static_cast<std::uint8_t>(bits | (std::signbit(v) ? 0x80 : 0));
}

}  // namespace partita
