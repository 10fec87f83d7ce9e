#pragma once
#include <cstdint>

#include "core/tensor/dtype.h"

namespace partita {

/// e4m3fn has no infinities: what is too large becomes its largest number. e5m2 is the upper half of a float16. In the
/// fnuz formats what is too large becomes NaN, which takes the place of -0. e8m0fnu is a power of two without a sign:
/// the exponent of a float.
bool is_float8(DType t);

/// Exact.
float from_float8(std::uint8_t bits, DType t);
/// Rounds to nearest even, as PyTorch's conversions do.
std::uint8_t to_float8(float v, DType t);

}  // namespace partita
