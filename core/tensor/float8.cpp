#include "core/tensor/float8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace partita {
namespace {

struct Format {
  int mantissa;  ///< bits
  int least;     ///< exponent of the least normal number
  int overflow;  ///< the bits of what is too large
  int infinity;  ///< 0x80: there is none
  int nan;       ///< 0x80: the sign's bit alone
};

Format format_of(DType t) {
  switch (t) {
    case DType::Float8E4M3FN:
      return {3, -6, 0x7e, 0x80, 0x7f};
    case DType::Float8E4M3FNUZ:
      return {3, -7, 0x80, 0x80, 0x80};
    case DType::Float8E5M2FNUZ:
      return {2, -15, 0x80, 0x80, 0x80};
    default:
      return {2, -14, 0x7c, 0x7c, 0x7f};
  }
}

constexpr std::uint32_t e8m0_nan = 0xff;

float from_e8m0(std::uint8_t bits) {
  return bits == e8m0_nan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bits - 127);
}

/// The nearest power of two; of two that are equally near, the larger for normal numbers. PyTorch takes no notice of
/// the sign, and makes NaN of infinities.
std::uint8_t to_e8m0(float v) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(v) & 0x7fffffff, exponent = bits >> 23;
  const std::uint32_t fraction = bits & 0x7fffff, half = 0x400000;
  if (exponent == e8m0_nan) return e8m0_nan;
  const bool up = fraction > half || (fraction == half && exponent > 0);
  return static_cast<std::uint8_t>(exponent + up);
}

}  // namespace

bool is_float8(DType t) {
  return t == DType::Float8E4M3FN || t == DType::Float8E5M2 ||
         (t >= DType::Float8E4M3FNUZ && t <= DType::Float8E8M0FNU);
}

float from_float8(std::uint8_t bits, DType t) {
  if (t == DType::Float8E8M0FNU) return from_e8m0(bits);
  const Format f = format_of(t);
  const int magnitude = bits & 0x7f, exponent = magnitude >> f.mantissa, hidden = 1 << f.mantissa;
  float v = std::ldexp(static_cast<float>(exponent == 0 ? magnitude : magnitude % hidden + hidden),
                       f.least - f.mantissa + std::max(exponent - 1, 0));
  if (magnitude == f.infinity)
    v = std::numeric_limits<float>::infinity();
  else if (magnitude > f.infinity || magnitude == f.nan || bits == f.nan)
    v = std::numeric_limits<float>::quiet_NaN();
  return (bits & 0x80) && bits != f.nan ? -v : v;
}

std::uint8_t to_float8(float v, DType t) {
  if (t == DType::Float8E8M0FNU) return to_e8m0(v);
  const Format f = format_of(t);
  int bits = f.nan;
  if (!std::isnan(v)) {
    const float magnitude = std::min(std::abs(v), 0x1p20f);
    const int exponent = magnitude == 0 ? f.least : std::max(std::ilogb(magnitude), f.least);
    const int rounded = static_cast<int>(std::nearbyint(std::ldexp(magnitude, f.mantissa - exponent)));
    bits = std::min(((exponent - f.least) << f.mantissa) + rounded, f.overflow);
  }
  const bool has_sign = std::signbit(v) && !(f.nan == 0x80 && bits == 0);
  return static_cast<std::uint8_t>(bits | (has_sign ? 0x80 : 0));
}

}  // namespace partita
