#pragma once
// Arithmetic on one element that plain C++ has no generic word for: what the CUDA column of scalar_ops.def is written
// in, beside the operators and math functions that C++ and CUDA both have. A GPU's compiler takes this file as it is,
// without the standard library; on the host scalar_math.h computes by it too. Integers wrap, and a quotient by zero is
// 0: who divides reports it.
#ifdef __CUDACC__
#define PARTITA_DEVICE __device__
#else
#include <cmath>
#define PARTITA_DEVICE
#endif

namespace partita::loops::device {

// Named here, because complex numbers have functions of these names in this namespace.
#ifdef __CUDACC__
using ::acos, ::acosh, ::asin, ::asinh, ::atan, ::atan2, ::atanh, ::copysign, ::cos, ::cosh, ::exp, ::exp2, ::expm1,
    ::fabs, ::fma, ::hypot, ::log, ::log10, ::log1p, ::log2, ::rsqrt, ::sin, ::sinh, ::sqrt, ::tan, ::tanh;
#else
using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::ceil, std::copysign,
    std::cos, std::cosh, std::erf, std::erfc, std::exp, std::exp2, std::expm1, std::fabs, std::floor, std::fma,
    std::fmod, std::hypot, std::lgamma, std::log, std::log10, std::log1p, std::log2, std::nextafter, std::pow,
    std::rint, std::sin, std::sinh, std::sqrt, std::tan, std::tanh, std::trunc;
#endif

template <class T>
inline constexpr bool is_real = T(1.5) != T(1);
template <class T>
inline constexpr bool is_signed = T(-1) < T(1);  // not bool, in which both are true

template <class T>
PARTITA_DEVICE bool negative(T a) {
  if constexpr (is_signed<T>)
    return a < T(0);
  else
    return false;
}

/// An integer as the unsigned type that its arithmetic wraps in.
template <class T>
PARTITA_DEVICE auto wrapped(T a) {
  if constexpr (is_real<T>)
    return a;
  else if constexpr (sizeof(T) <= 4)
    return static_cast<unsigned int>(a);
  else
    return static_cast<unsigned long long>(a);
}

/// Integers truncate towards zero.
template <class T>
PARTITA_DEVICE T quotient(T a, T b) {
  if constexpr (is_real<T>) {
    return a / b;
  } else {
    if (b == T(0)) return T(0);
    if (negative(b) && b == T(-1)) return static_cast<T>(-wrapped(a));
    return static_cast<T>(a / b);
  }
}

/// Sign of the dividend.
template <class T>
PARTITA_DEVICE T rest(T a, T b) {
  if constexpr (is_real<T>)
    return fmod(a, b);
  else
    return b == T(0) || (negative(b) && b == T(-1)) ? T(0) : static_cast<T>(a % b);
}

/// Sign of the divisor.
template <class T>
PARTITA_DEVICE T floor_rest(T a, T b) {
  const T r = rest(a, b);
  return r != T(0) && negative(r) != negative(b) ? static_cast<T>(r + b) : r;
}

/// Floats: Python's rule through fmod, so that a result one ulp below an integer is not rounded up to it.
template <class T>
PARTITA_DEVICE T floor_quotient(T a, T b) {
  if constexpr (is_real<T>) {
    if (b == T(0)) return a / b;
    const T mod = fmod(a, b);
    T div = (a - mod) / b;
    if (mod != T(0) && (b < T(0)) != (mod < T(0))) div -= T(1);
    if (div == T(0)) return copysign(T(0), a / b);
    const T rounded = floor(div);
    return div - rounded > T(0.5) ? rounded + T(1) : rounded;
  } else {
    const T q = quotient(a, b);
    const bool inexact = static_cast<T>(wrapped(q) * wrapped(b)) != a;
    return inexact && b != T(0) && negative(a) != negative(b) ? static_cast<T>(q - T(1)) : q;
  }
}

/// A negative exponent of an integer gives 0 but for the bases 1 and -1.
template <class T>
PARTITA_DEVICE T power(T a, T b) {
  if constexpr (is_real<T>) {
    return pow(a, b);
  } else {
    if (negative(b)) return a == T(1) || (a == T(-1) && (b & 1) == 0) ? T(1) : a == T(-1) ? T(-1) : T(0);
    T result = 1;
    for (; b != T(0); b = static_cast<T>(b >> 1)) {
      if (b & 1) result = static_cast<T>(wrapped(result) * wrapped(a));
      a = static_cast<T>(wrapped(a) * wrapped(a));
    }
    return result;
  }
}

template <class T>
PARTITA_DEVICE T magnitude(T a) {
  if constexpr (is_real<T>)
    return fabs(a);
  else
    return negative(a) ? static_cast<T>(-wrapped(a)) : a;
}

template <class T>
PARTITA_DEVICE T sign_of(T a) {
  return static_cast<T>((T(0) < a) - negative(a));
}

template <class T>
PARTITA_DEVICE T round_down(T a) {
  if constexpr (is_real<T>)
    return floor(a);
  else
    return a;
}
template <class T>
PARTITA_DEVICE T round_up(T a) {
  if constexpr (is_real<T>)
    return ceil(a);
  else
    return a;
}
template <class T>
PARTITA_DEVICE T round_to_zero(T a) {
  if constexpr (is_real<T>)
    return trunc(a);
  else
    return a;
}
/// Half to even.
template <class T>
PARTITA_DEVICE T round_to_even(T a) {
  if constexpr (is_real<T>)
    return rint(a);
  else
    return a;
}

template <class T>
PARTITA_DEVICE T bit_not(T a) {
  return static_cast<T>(~a);
}
PARTITA_DEVICE inline bool bit_not(bool a) {
  return !a;
}

/// Shifts by the width and more, and by negative amounts, leave nothing, or the sign. A bool has one bit.
template <class T>
inline constexpr unsigned width = T(2) == T(1) ? 1 : sizeof(T) * 8;
template <class T>
PARTITA_DEVICE T shift_left(T a, T b) {
  return negative(b) || wrapped(b) >= width<T> ? T(0) : static_cast<T>(wrapped(a) << wrapped(b));
}
template <class T>
PARTITA_DEVICE T shift_right(T a, T b) {
  if (negative(b) || wrapped(b) >= width<T>) return negative(a) ? T(-1) : T(0);
  return static_cast<T>(a >> b);
}

/// Recurrence up to 10, then the asymptotic series; reflection below 0. Poles: -inf at +0, +inf at -0, NaN at -1, -2,
/// ...
template <class T>
PARTITA_DEVICE T digamma(T a) {
  constexpr double pi = 3.141592653589793238462643383279502884;
  double x = a;
  if (x == 0) return -1 / a;
  double result = 0;
  if (x < 0) {
    if (x == trunc(x)) return static_cast<T>(sqrt(x));
    result = -pi / tan(pi * (x - trunc(x)));
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
  return static_cast<T>(result + log(x) - 0.5 / x - tail);
}

}  // namespace partita::loops::device
