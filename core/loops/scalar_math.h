#pragma once
// The C++ meaning of the rows of scalar_ops.def: PyTorch's arithmetic on one element. A function without an overload
// for a type does not exist for that type (exp of an int: bodies cast first). Integers wrap; integer division by zero
// throws.
#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

namespace partita::loops {

/// Thrown by an integer division by zero. The caller of an evaluation turns it into PyTorch's ZeroDivisionError.
struct ZeroDivision {};

template <class T>
concept Real = std::floating_point<T>;
template <class T>
concept Integer = std::integral<T>;  // includes bool
template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};
template <class T>
concept Complex = IsComplex<T>::value;
template <class T>
concept Ordered = Real<T> || Integer<T>;
template <class T>
concept Inexact = Real<T> || Complex<T>;

/// The unsigned type in which an integer type's arithmetic wraps.
template <Integer T>
struct Wrapping {
  using type = std::conditional_t<(sizeof(T) < 4), std::uint32_t,
                                  std::make_unsigned_t<std::conditional_t<std::same_as<T, bool>, int, T>>>;
};

template <class T>
T scalar_add(T a, T b) {
  if constexpr (std::same_as<T, bool>)
    return a || b;
  else if constexpr (Integer<T>)
    return static_cast<T>(static_cast<typename Wrapping<T>::type>(a) + static_cast<typename Wrapping<T>::type>(b));
  else
    return a + b;
}
template <class T>
T scalar_sub(T a, T b) {
  if constexpr (std::same_as<T, bool>)
    return a != b;
  else if constexpr (Integer<T>)
    return static_cast<T>(static_cast<typename Wrapping<T>::type>(a) - static_cast<typename Wrapping<T>::type>(b));
  else
    return a - b;
}
template <class T>
T scalar_mul(T a, T b) {
  if constexpr (std::same_as<T, bool>)
    return a && b;
  else if constexpr (Integer<T>)
    return static_cast<T>(static_cast<typename Wrapping<T>::type>(a) * static_cast<typename Wrapping<T>::type>(b));
  else
    return a * b;
}
template <class T>
T scalar_neg(T a) {
  if constexpr (Integer<T>)
    return scalar_sub(T(0), a);
  else
    return -a;
}

/// An integer quotient is truncated towards zero.
template <class T>
T scalar_div(T a, T b) {
  if constexpr (Integer<T>) {
    if (b == T(0)) throw ZeroDivision{};
    if constexpr (std::signed_integral<T>)
      if (b == T(-1)) return scalar_neg(a);
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}

/// Floats follow Python's rule through fmod, so that a quotient one ulp below an integer is not rounded up to it.
template <Ordered T>
T scalar_floordiv(T a, T b) {
  if constexpr (Integer<T>) {
    T quotient = scalar_div(a, b);
    if constexpr (std::signed_integral<T>)
      if (((a < 0) != (b < 0)) && static_cast<T>(quotient * b) != a) return static_cast<T>(quotient - 1);
    return quotient;
  } else {
    if (b == 0) return a / b;
    T mod = std::fmod(a, b);
    T div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
    if (div == 0) return std::copysign(T(0), a / b);
    T rounded = std::floor(div);
    return div - rounded > T(0.5) ? rounded + 1 : rounded;
  }
}

/// The result has the sign of the dividend.
template <Ordered T>
T scalar_fmod(T a, T b) {
  if constexpr (Integer<T>) {
    if (b == T(0)) throw ZeroDivision{};
    if constexpr (std::signed_integral<T>)
      if (b == T(-1)) return 0;
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}

/// The result has the sign of the divisor.
template <Ordered T>
T scalar_remainder(T a, T b) {
  T mod = scalar_fmod(a, b);
  if constexpr (!std::unsigned_integral<T>)
    if (mod != 0 && (mod < 0) != (b < 0)) return static_cast<T>(mod + b);
  return mod;
}

/// An integer to a negative power is 0, except for the bases 1 and -1.
template <class T>
T scalar_pow(T a, T b) {
  if constexpr (Integer<T>) {
    if constexpr (std::signed_integral<T>)
      if (b < 0) return a == 1 ? T(1) : a == -1 ? (b % 2 == 0 ? T(1) : T(-1)) : T(0);
    T result = 1;
    while (b) {
      if (b & 1) result = scalar_mul(result, a);
      b = static_cast<T>(b >> 1);
      a = scalar_mul(a, a);
    }
    return result;
  } else if constexpr (Complex<T>) {
    if (b == T(0)) return T(1);
    if (a == T(0)) return b.real() > 0 ? T(0) : std::pow(a, b);
    return std::pow(a, b);
  } else {
    return std::pow(a, b);
  }
}

template <Real T>
T scalar_fma(T a, T b, T c) {
  return std::fma(a, b, c);
}

/// A real number is its own conjugate.
template <class T>
T scalar_conj(T a) {
  if constexpr (Complex<T>)
    return std::conj(a);
  else
    return a;
}

template <class T>
T scalar_abs(T a) {
  if constexpr (Complex<T>)
    return T(std::hypot(a.real(), a.imag()));
  else if constexpr (std::unsigned_integral<T>)
    return a;
  else if constexpr (Integer<T>)
    return a < 0 ? scalar_neg(a) : a;
  else
    return std::fabs(a);
}

/// -1, 0 or 1; 0 for a NaN; a / |a| for complex numbers.
template <class T>
T scalar_sign(T a) {
  if constexpr (Complex<T>)
    return a == T(0) ? T(0) : a / std::abs(a);
  else if constexpr (std::unsigned_integral<T>)
    return a != T(0);
  else
    return static_cast<T>((T(0) < a) - (a < T(0)));
}

/// If either side is NaN, so is the result.
template <Ordered T>
T scalar_min(T a, T b) {
  return a != a || a < b ? a : b;
}
template <Ordered T>
T scalar_max(T a, T b) {
  return a != a || a > b ? a : b;
}

template <Inexact T>
T scalar_sqrt(T a) {
  return std::sqrt(a);
}
template <Inexact T>
T scalar_rsqrt(T a) {
  return T(1) / std::sqrt(a);
}
template <Inexact T>
T scalar_exp(T a) {
  return std::exp(a);
}
template <Inexact T>
T scalar_exp2(T a) {
  if constexpr (Complex<T>)
    return std::exp(a * std::numbers::ln2_v<typename T::value_type>);
  else
    return std::exp2(a);
}
template <Inexact T>
T scalar_expm1(T a) {
  if constexpr (Complex<T>) {
    auto x = a.real(), y = a.imag();
    auto half_sine = std::sin(y / 2);
    auto e = std::exp(x);
    return T(std::expm1(x) * std::cos(y) - 2 * half_sine * half_sine, e * std::sin(y));
  } else {
    return std::expm1(a);
  }
}
template <Inexact T>
T scalar_log(T a) {
  return std::log(a);
}
template <Inexact T>
T scalar_log2(T a) {
  if constexpr (Complex<T>)
    return std::log(a) / std::numbers::ln2_v<typename T::value_type>;
  else
    return std::log2(a);
}
template <Inexact T>
T scalar_log10(T a) {
  return std::log10(a);
}
template <Inexact T>
T scalar_log1p(T a) {
  if constexpr (Complex<T>) {
    auto x = a.real(), y = a.imag();
    if (std::abs(x) + std::abs(y) > 0.5) return std::log(T(1) + a);
    return T(std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x));
  } else {
    return std::log1p(a);
  }
}
template <Inexact T>
T scalar_sin(T a) {
  return std::sin(a);
}
template <Inexact T>
T scalar_cos(T a) {
  return std::cos(a);
}
template <Inexact T>
T scalar_tan(T a) {
  return std::tan(a);
}
template <Inexact T>
T scalar_asin(T a) {
  return std::asin(a);
}
template <Inexact T>
T scalar_acos(T a) {
  return std::acos(a);
}
template <Inexact T>
T scalar_atan(T a) {
  return std::atan(a);
}
template <Inexact T>
T scalar_sinh(T a) {
  return std::sinh(a);
}
template <Inexact T>
T scalar_cosh(T a) {
  return std::cosh(a);
}
template <Inexact T>
T scalar_tanh(T a) {
  return std::tanh(a);
}
template <Inexact T>
T scalar_asinh(T a) {
  return std::asinh(a);
}
template <Inexact T>
T scalar_acosh(T a) {
  return std::acosh(a);
}
template <Inexact T>
T scalar_atanh(T a) {
  return std::atanh(a);
}
template <Real T>
T scalar_atan2(T a, T b) {
  return std::atan2(a, b);
}
template <Real T>
T scalar_erf(T a) {
  return std::erf(a);
}
template <Real T>
T scalar_erfc(T a) {
  return std::erfc(a);
}

/// A rational first guess and two Newton steps, as in PyTorch's calc_erfinv.
template <Real T>
T scalar_erfinv(T a) {
  constexpr double central[2][4] = {{0.886226899, -1.645349621, 0.914624893, -0.140543331},
                                    {-2.118377725, 1.442710462, -0.329097515, 0.012229801}};
  constexpr double tail[2][4] = {{-1.970840454, -1.624906493, 3.429567803, 1.641345311},
                                 {3.543889200, 1.637067800, 0, 0}};
  double y = a, magnitude = std::fabs(y);
  if (!(magnitude <= 1)) return std::numeric_limits<T>::quiet_NaN();
  if (magnitude == 1) return std::copysign(std::numeric_limits<T>::infinity(), a);
  double x;
  if (magnitude <= 0.7) {
    double z = y * y;
    double num = ((central[0][3] * z + central[0][2]) * z + central[0][1]) * z + central[0][0];
    double dem = (((central[1][3] * z + central[1][2]) * z + central[1][1]) * z + central[1][0]) * z + 1;
    x = y * num / dem;
  } else {
    double z = std::sqrt(-std::log((1 - magnitude) / 2));
    double num = ((tail[0][3] * z + tail[0][2]) * z + tail[0][1]) * z + tail[0][0];
    double dem = (tail[1][1] * z + tail[1][0]) * z + 1;
    x = std::copysign(num / dem, y);
  }
  for (int step = 0; step < 2; ++step) x -= (std::erf(x) - y) / (2 / std::sqrt(std::numbers::pi) * std::exp(-x * x));
  return static_cast<T>(x);
}

template <Real T>
T scalar_lgamma(T a) {
  return std::lgamma(a);
}

/// Recurrence up to 10, then the asymptotic series; reflection below 0. Poles: -inf at +0, +inf at -0, NaN at -1, -2,
/// ...
template <Real T>
T scalar_digamma(T a) {
  double x = a;
  if (x == 0) return std::copysign(std::numeric_limits<T>::infinity(), -a);
  double result = 0;
  if (x < 0) {
    if (x == std::trunc(x)) return std::numeric_limits<T>::quiet_NaN();
    double whole;
    result = -std::numbers::pi / std::tan(std::numbers::pi * std::modf(x, &whole));
    x = 1 - x;
  }
  for (; x < 10; ++x) result -= 1 / x;
  constexpr double series[] = {8.33333333333333333333E-2,  -2.10927960927960927961E-2, 7.57575757575757575758E-3,
                               -4.16666666666666666667E-3, 3.96825396825396825397E-3,  -8.33333333333333333333E-3,
                               8.33333333333333333333E-2};
  double tail = 0;
  if (x < 1e17) {
    double z = 1 / (x * x);
    for (double c : series) tail = tail * z + c;
    tail *= z;
  }
  return static_cast<T>(result + std::log(x) - 0.5 / x - tail);
}

template <Inexact T>
T scalar_sigmoid(T a) {
  return T(1) / (T(1) + std::exp(-a));
}

template <Ordered T>
T scalar_floor(T a) {
  if constexpr (Real<T>)
    return std::floor(a);
  else
    return a;
}
template <Ordered T>
T scalar_ceil(T a) {
  if constexpr (Real<T>)
    return std::ceil(a);
  else
    return a;
}
template <Ordered T>
T scalar_trunc(T a) {
  if constexpr (Real<T>)
    return std::trunc(a);
  else
    return a;
}
/// Rounds halves to even.
template <Ordered T>
T scalar_round(T a) {
  if constexpr (Real<T>)
    return std::nearbyint(a);
  else
    return a;
}

template <Ordered T>
bool scalar_lt(T a, T b) {
  return a < b;
}
template <Ordered T>
bool scalar_le(T a, T b) {
  return a <= b;
}

template <Integer T>
T scalar_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <Integer T>
T scalar_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <Integer T>
T scalar_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <Integer T>
T scalar_not(T a) {
  if constexpr (std::same_as<T, bool>)
    return !a;
  else
    return static_cast<T>(~a);
}
template <Integer T>
T scalar_shl(T a, T b) {
  if constexpr (std::same_as<T, bool>)
    return b ? false : a;
  else {
    if (b < T(0) || b >= T(sizeof(T) * 8)) return 0;
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b);
  }
}
template <Integer T>
T scalar_shr(T a, T b) {
  if constexpr (std::same_as<T, bool>)
    return b ? false : a;
  else {
    if (b < T(0) || b >= T(sizeof(T) * 8)) return a < T(0) ? static_cast<T>(-1) : T(0);
    return static_cast<T>(a >> b);
  }
}
template <Real T>
T scalar_copysign(T a, T b) {
  return std::copysign(a, b);
}
template <Real T>
T scalar_nextafter(T a, T b) {
  return std::nextafter(a, b);
}

}  // namespace partita::loops
