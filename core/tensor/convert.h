#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "core/tensor/dtype.h"

namespace partita {

template <class T>
struct is_complex_type : std::false_type {};
template <class T>
struct is_complex_type<std::complex<T>> : std::true_type {};

/// Converts one element as Tensor.to does. Complex values lose their imaginary part, half types go through float, and
/// every non-zero value becomes true. Floats out of range and NaN follow PyTorch on x86: they become the least int32
/// (the least int64 for 64-bit types and uint32), of which narrower types take the low bits; a value of 2^63 or more
/// that becomes uint64 is converted minus 2^63, and the highest bit is flipped.
template <class To, class From>
To convert(From v) {
  if constexpr (std::is_same_v<From, To>) {
    return v;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(to_float(v));
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(convert<float>(v));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(convert<float>(v));
  } else if constexpr (std::is_same_v<From, StoredBool>) {
    return convert<To>(static_cast<bool>(v));
  } else if constexpr (std::is_same_v<To, StoredBool>) {
    return convert<bool>(v);
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (is_complex_type<To>::value) {
    if constexpr (is_complex_type<From>::value)
      return To(v);
    else
      return To(static_cast<typename To::value_type>(v));
  } else if constexpr (is_complex_type<From>::value) {
    return convert<To>(v.real());
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, std::uint64_t>)
      if (v >= From(0x1p63)) return static_cast<To>(convert<std::int64_t>(v - From(0x1p63))) ^ (To(1) << 63);
    if constexpr (sizeof(To) < sizeof(std::int64_t) && !std::is_same_v<To, std::uint32_t>)
      if (!(v > -2147483649.0 && v < 2147483648.0)) return static_cast<To>(INT32_MIN);
    if (!(v > -9.2233720368547758e18 && v < 9.2233720368547758e18)) return static_cast<To>(INT64_MIN);
    return static_cast<To>(static_cast<std::int64_t>(v));
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace partita
