#pragma once
// The C++ meaning of the rows of scalar_ops.def: PyTorch's arithmetic on one element, of real numbers as
// scalar_device.h has it. A function that has no overload for a type does not exist for it (exp of an int: bodies cast
// first). Dividing an integer by zero raises PyTorch's
// error.
#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "core/base/raise.h"
#include "core/loops/complex_device.h"

namespace partita::loops {

[[noreturn, gnu::noinline]] inline void raise_zero_division() {
  throw Raise{input_error("ops.zero_division", "ZeroDivisionError")};
}

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

/// The argument itself. A row whose argument is one of these has no operation for other types.
template <Real T>
T real_only(T a) {
  return a;
}
template <Inexact T>
T inexact_only(T a) {
  return a;
}
template <Integer T>
T integer_only(T a) {
  return a;
}
template <Ordered T>
T ordered_only(T a) {
  return a;
}

template <class T>
T scalar_add(T a, T b) {
  return static_cast<T>(device::wrapped(a) + device::wrapped(b));
}
/// Complex numbers are multiplied and divided as c10::complex does, which differs from C++ where a part is infinite or
/// the divisor is 0.
template <class R>
device::Complex<R> as_device(std::complex<R> z) {
  return {z.real(), z.imag()};
}
template <class R>
std::complex<R> as_host(device::Complex<R> z) {
  return {z.re, z.im};
}
template <class T>
T scalar_mul(T a, T b) {
  if constexpr (Complex<T>)
    return as_host(as_device(a) * as_device(b));
  else
    return static_cast<T>(device::wrapped(a) * device::wrapped(b));
}

/// The divisor itself. Raises when it is an integer and 0.
template <class T>
T nonzero(T b) {
  if constexpr (Integer<T>)
    if (b == T(0)) raise_zero_division();
  return b;
}

template <class T>
T scalar_div(T a, T b) {
  if constexpr (Complex<T>)
    return as_host(as_device(a) / as_device(b));
  else
    return device::quotient(a, nonzero(b));
}

template <class T>
T scalar_pow(T a, T b) {
  if constexpr (Complex<T>)
    return as_host(device::power(as_device(a), as_device(b)));
  else
    return device::power(a, b);
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
  else
    return device::magnitude(a);
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
T scalar_log2(T a) {
  if constexpr (Complex<T>)
    return std::log(a) / std::numbers::ln2_v<typename T::value_type>;
  else
    return std::log2(a);
}
template <Inexact T>
T scalar_log1p(T a) {
  if constexpr (Complex<T>) {
    auto x = a.real(), y = a.imag();
    if (std::abs(x) + std::abs(y) > 0.5) return std::log(T(1 + x, y));
    return T(std::log1p(x * (2 + x) + y * y) / 2, std::atan2(y, 1 + x));
  } else {
    return std::log1p(a);
  }
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

}  // namespace partita::loops
