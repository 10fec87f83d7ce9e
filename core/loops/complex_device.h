#pragma once
// Complex numbers as kernels compute with them: the CUDA column of scalar_ops.def is written in this and in
// scalar_device.h. Special values are those of C's Annex G. Functions compute in double and round once; sums, products
// and quotients in the type itself. A GPU's compiler takes this file as it is.
#include "core/loops/scalar_device.h"

namespace partita::loops::device {

template <class R>
struct Complex {
  static_assert(sizeof(R) >= 4, "a part of a complex number");
  R re, im;

  Complex() = default;
  PARTITA_DEVICE constexpr Complex(R real, R imaginary = R(0)) : re(real), im(imaginary) {}
  PARTITA_DEVICE friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  PARTITA_DEVICE friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  PARTITA_DEVICE friend Complex operator-(Complex a) { return {-a.re, -a.im}; }
  PARTITA_DEVICE friend Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  /// By a divisor scaled by its larger part, as c10::complex divides.
  PARTITA_DEVICE friend Complex operator/(Complex a, Complex b) {
    const R re = fabs(b.re), im = fabs(b.im);
    if (re >= im) {
      if (re == R(0) && im == R(0)) return {a.re / re, a.im / im};
      const R ratio = b.im / b.re, scale = R(1) / (b.re + b.im * ratio);
      return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const R ratio = b.re / b.im, scale = R(1) / (b.re * ratio + b.im);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
  }
  PARTITA_DEVICE friend bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  PARTITA_DEVICE friend bool operator!=(Complex a, Complex b) { return !(a == b); }
};

template <class R, class From>
PARTITA_DEVICE Complex<R> to_complex(From real) {
  return {static_cast<R>(real)};
}
template <class R, class From>
PARTITA_DEVICE Complex<R> to_complex(Complex<From> z) {
  return {static_cast<R>(z.re), static_cast<R>(z.im)};
}
template <class R>
PARTITA_DEVICE Complex<R> wrapped(Complex<R> z) {
  return z;
}
template <class R>
PARTITA_DEVICE Complex<R> quotient(Complex<R> a, Complex<R> b) {
  return a / b;
}
template <class R>
PARTITA_DEVICE Complex<R> conjugate(Complex<R> z) {
  return {z.re, -z.im};
}
template <class R>
PARTITA_DEVICE Complex<R> magnitude(Complex<R> z) {
  return {hypot(z.re, z.im)};
}
template <class R>
PARTITA_DEVICE Complex<R> sign_of(Complex<R> z) {
  if (z == Complex<R>(0)) return {0};
  const R size = hypot(z.re, z.im);
  return {z.re / size, z.im / size};
}

using Wide = Complex<double>;

PARTITA_DEVICE inline bool is_nan(double v) {
  return v != v;
}
PARTITA_DEVICE inline bool is_finite(double v) {
  return v - v == 0;
}
PARTITA_DEVICE inline bool is_infinite(double v) {
  return !is_finite(v) && !is_nan(v);
}
PARTITA_DEVICE inline Wide divided(Wide z, double by) {
  return {z.re / by, z.im / by};
}
PARTITA_DEVICE inline Wide turned(Wide z) {  // by i
  return {-z.im, z.re};
}
PARTITA_DEVICE inline Wide turned_back(Wide z) {
  return {z.im, -z.re};
}
/// What Annex G reads of a number of which a part is infinite: that part as 1, the other as 0.
PARTITA_DEVICE inline Wide direction(Wide z) {
  return {copysign(is_infinite(z.re) ? 1.0 : 0.0, z.re), copysign(is_infinite(z.im) ? 1.0 : 0.0, z.im)};
}
PARTITA_DEVICE inline Wide without_nan(Wide z) {
  return {is_nan(z.re) ? copysign(0.0, z.re) : z.re, is_nan(z.im) ? copysign(0.0, z.im) : z.im};
}
/// The product as C multiplies: with an infinite factor it is infinite, if neither is 0.
PARTITA_DEVICE inline Wide wide_product(Wide a, Wide b) {
  const Wide plain = a * b;
  if (!is_nan(plain.re) || !is_nan(plain.im)) return plain;
  const bool a_infinite = is_infinite(a.re) || is_infinite(a.im), b_infinite = is_infinite(b.re) || is_infinite(b.im);
  if (!a_infinite && !b_infinite) return plain;
  if (a_infinite) a = direction(a), b = without_nan(b);
  if (b_infinite) b = direction(b), a = without_nan(a);
  const double infinite = 1e308 * 10;
  const Wide towards = a * b;
  return {infinite * towards.re, infinite * towards.im};
}
/// The product with `by` and e^x, of which the half powers do not overflow where the product does not.
PARTITA_DEVICE inline double scaled(double v, double x, double by = 1) {
  if (x < 700) return exp(x) * by * v;
  const double half = exp(x / 2);
  return half * by * v * half;
}

PARTITA_DEVICE inline Wide wide_exp(Wide z) {
  if (z.im == 0) return {exp(z.re), z.im};
  if (!is_finite(z.re) && !is_finite(z.im)) {
    if (is_nan(z.re)) return {z.re, z.re};
    return z.re < 0 ? Wide(0, copysign(0.0, z.im)) : Wide(z.re, z.im - z.im);
  }
  return {scaled(cos(z.im), z.re), scaled(sin(z.im), z.re)};
}

/// Of |z|. Near 1 the square less 1 is summed of products whose rounding errors are known.
PARTITA_DEVICE inline double log_magnitude(Wide z) {
  const double x = fabs(z.re), y = fabs(z.im), most = x < y ? y : x, least = x < y ? x : y;
  if (most > 1e300 && is_finite(most)) return log(hypot(most / 4, least / 4)) + log(4.0);
  if (most < 1e-300) return log(hypot(most * 0x1p108, least * 0x1p108)) - 108 * log(2.0);
  if (!(most > 0.5 && most < 1.5 && least < 1.5)) return log(hypot(x, y));
  const double square = most * most, square_error = fma(most, most, -square);
  const double other = least * least, other_error = fma(least, least, -other);
  const double above = square - 1, sum = above + other, part = sum - above;
  const double sum_error = (above - (sum - part)) + (other - part), above_error = (square - (above + 1));
  return log1p(sum + (sum_error + above_error + square_error + other_error)) / 2;
}
PARTITA_DEVICE inline Wide wide_log(Wide z) {
  return {log_magnitude(z), atan2(z.im, z.re)};
}

PARTITA_DEVICE inline Wide wide_sqrt(Wide z) {
  if (is_infinite(z.im)) return {fabs(z.im), z.im};
  if (is_nan(z.re)) return {z.re, z.re};
  if (is_infinite(z.re)) {
    const double other = is_nan(z.im) ? z.im : 0;
    return z.re > 0 ? Wide(z.re, is_nan(z.im) ? z.im : copysign(0.0, z.im)) : Wide(other, copysign(z.re, z.im));
  }
  if (z.re == 0 && z.im == 0) return {0, z.im};
  const double x = fabs(z.re), y = fabs(z.im), most = x < y ? y : x;
  const double by = most > 1e300 ? 0x1p-4 : most < 1e-290 ? 0x1p108 : 1, back = by < 1 ? 4 : by > 1 ? 0x1p-54 : 1;
  const double root = sqrt((x * by + hypot(x * by, y * by)) / 2), other = y * by / (2 * root);
  return z.re >= 0 ? Wide(root * back, copysign(other * back, z.im)) : Wide(other * back, copysign(root * back, z.im));
}

PARTITA_DEVICE inline Wide wide_sinh(Wide z) {
  if (z.im == 0) return {sinh(z.re), z.im};
  if (!is_finite(z.im) && (z.re == 0 || is_infinite(z.re))) return {z.re, z.im - z.im};
  if (fabs(z.re) < 700) return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
  const double size = fabs(z.re);
  return {copysign(1.0, z.re) * scaled(cos(z.im), size, 0.5), scaled(sin(z.im), size, 0.5)};
}
PARTITA_DEVICE inline Wide wide_cosh(Wide z) {
  if (z.im == 0) return {cosh(z.re), is_nan(z.re) ? z.im : z.im * copysign(1.0, z.re)};
  if (!is_finite(z.im) && z.re == 0) return {z.im - z.im, z.re};
  if (!is_finite(z.im) && is_infinite(z.re)) return {fabs(z.re), z.im - z.im};
  if (fabs(z.re) < 700) return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
  const double size = fabs(z.re);
  return {scaled(cos(z.im), size, 0.5), copysign(1.0, z.re) * scaled(sin(z.im), size, 0.5)};
}
/// Kahan's formula (Branch Cuts for Complex Elementary Functions, 1987).
PARTITA_DEVICE inline Wide wide_tanh(Wide z) {
  if (is_infinite(z.re)) return {copysign(1.0, z.re), copysign(0.0, is_finite(z.im) ? sin(2 * z.im) : z.im)};
  if (is_nan(z.re)) return {z.re, z.im == 0 ? z.im : z.re};
  if (!is_finite(z.im)) return {z.re == 0 ? z.re : z.im - z.im, z.im - z.im};
  if (fabs(z.re) >= 22) {
    const double decay = exp(-fabs(z.re));  // whose square may be less than any number
    return {copysign(1.0, z.re), 4 * sin(z.im) * cos(z.im) * decay * decay};
  }
  const double t = tan(z.im), beta = 1 + t * t, s = sinh(z.re), rho = sqrt(1 + s * s), below = 1 + beta * s * s;
  return {beta * rho * s / below, t / below};
}

/// Are the roots of 1 - z and 1 + z those of -z and z?
PARTITA_DEVICE inline bool is_large(Wide z) {
  return fabs(z.re) > 1e150 || fabs(z.im) > 1e150;
}
/// Kahan's formulas, of the roots of 1 - z and 1 + z.
PARTITA_DEVICE inline Wide wide_asinh(Wide z) {
  if (is_infinite(z.re) || is_infinite(z.im)) {
    const double angle = atan2(is_infinite(z.im) ? 1.0 : 0.0, is_infinite(z.re) ? 1.0 : 0.0);
    const bool unknown = is_nan(z.re) || is_nan(z.im);
    const double size = is_infinite(z.re) ? z.re : copysign(fabs(z.im), z.re);
    return {size, unknown ? z.re - z.re + (z.im - z.im) : copysign(angle, z.im)};
  }
  if (is_nan(z.re)) return {z.re, z.im == 0 ? z.im : z.re};
  if (is_nan(z.im)) return {z.im, z.im};
  if (is_large(z)) return {copysign(log_magnitude(z) + log(2.0), z.re), atan2(z.im, fabs(z.re))};
  const Wide below = wide_sqrt({1 + z.im, -z.re}), above = wide_sqrt({1 - z.im, z.re});
  return {asinh(below.re * above.im - below.im * above.re), atan2(z.im, below.re * above.re - below.im * above.im)};
}
PARTITA_DEVICE inline Wide wide_acos(Wide z) {
  if (is_infinite(z.re) || is_infinite(z.im)) {
    const double angle = atan2(is_infinite(z.im) ? 1.0 : 0.0, is_infinite(z.re) ? copysign(1.0, z.re) : 0.0);
    const bool unknown = is_nan(z.re) || is_nan(z.im);
    const double size = is_infinite(z.im) ? z.im : fabs(z.re);
    return {unknown ? z.re - z.re + (z.im - z.im) : angle,
            is_infinite(z.im) || is_nan(z.im) ? -size : copysign(size, -z.im)};
  }
  if (is_nan(z.re)) return {z.re, z.re};
  if (is_nan(z.im)) return {z.re == 0 ? 1.57079632679489661923 : z.im, z.im};
  if (is_large(z)) return {atan2(fabs(z.im), z.re), -copysign(log_magnitude(z) + log(2.0), z.im)};
  const Wide below = wide_sqrt({1 - z.re, -z.im}), above = wide_sqrt({1 + z.re, z.im});
  return {2 * atan2(below.re, above.re), asinh(above.re * below.im - above.im * below.re)};
}
PARTITA_DEVICE inline Wide wide_acosh(Wide z) {
  const Wide w = wide_acos(z);
  return {fabs(w.im), copysign(w.re, z.im)};
}
PARTITA_DEVICE inline Wide wide_atanh(Wide z) {
  const double half_pi = 1.57079632679489661923, x = fabs(z.re), y = fabs(z.im);
  if (is_infinite(z.im)) return {copysign(0.0, z.re), copysign(half_pi, z.im)};
  if (is_nan(z.re)) return {z.re, z.re};
  if (is_nan(z.im)) return {z.re == 0 || is_infinite(z.re) ? copysign(0.0, z.re) : z.im, z.im};
  if (is_infinite(z.re)) return {copysign(0.0, z.re), copysign(half_pi, z.im)};
  if (is_large(z)) {
    const double size = hypot(x / 2, y / 2);
    return {copysign(x / 4 / size / size, z.re), copysign(half_pi, z.im)};
  }
  const double near = (1 - x) * (1 - x) + y * y, angle = atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2;
  const double size = near < 1e-290 && y > 0 ? (log(2.0) - log(hypot(1 - x, y))) / 2 : log1p(4 * x / near) / 4;
  return {copysign(size, z.re), copysign(angle, z.im)};
}

// The functions that C++ has of real numbers. A sine is that of a hyperbolic one, turned.
#define PARTITA_COMPLEX(name, wide)              \
  template <class R>                             \
  PARTITA_DEVICE Complex<R> name(Complex<R> a) { \
    const Wide z = to_complex<double>(a);        \
    return to_complex<R>(wide);                  \
  }
PARTITA_COMPLEX(exp, wide_exp(z))
PARTITA_COMPLEX(log, wide_log(z))
PARTITA_COMPLEX(sqrt, wide_sqrt(z))
PARTITA_COMPLEX(rsqrt, Wide(1) / wide_sqrt(z))
PARTITA_COMPLEX(sinh, wide_sinh(z))
PARTITA_COMPLEX(cosh, wide_cosh(z))
PARTITA_COMPLEX(tanh, wide_tanh(z))
PARTITA_COMPLEX(asinh, wide_asinh(z))
PARTITA_COMPLEX(acosh, wide_acosh(z))
PARTITA_COMPLEX(atanh, wide_atanh(z))
PARTITA_COMPLEX(sin, turned_back(wide_sinh(turned(z))))
PARTITA_COMPLEX(cos, wide_cosh(turned(z)))
PARTITA_COMPLEX(tan, turned_back(wide_tanh(turned(z))))
PARTITA_COMPLEX(asin, turned_back(wide_asinh(turned(z))))
PARTITA_COMPLEX(acos, wide_acos(z))
PARTITA_COMPLEX(atan, turned_back(wide_atanh(turned(z))))
PARTITA_COMPLEX(exp2, wide_exp(Wide(z.re * 0.693147180559945309417, z.im * 0.693147180559945309417)))
PARTITA_COMPLEX(log2, divided(wide_log(z), 0.693147180559945309417))
PARTITA_COMPLEX(log10, divided(wide_log(z), 2.30258509299404568402))
#undef PARTITA_COMPLEX

template <class R>
PARTITA_DEVICE Complex<R> expm1(Complex<R> a) {
  const double x = a.re, y = a.im, half_sine = sin(y / 2), e = exp(x);
  return to_complex<R>(Wide(expm1(x) * cos(y) - 2 * half_sine * half_sine, e * sin(y)));
}
template <class R>
PARTITA_DEVICE Complex<R> log1p(Complex<R> a) {
  const double x = a.re, y = a.im;
  if (fabs(x) + fabs(y) > 0.5) return to_complex<R>(wide_log(Wide(1 + x, y)));
  return to_complex<R>(Wide(log1p(x * (2 + x) + y * y) / 2, atan2(y, 1 + x)));
}
/// As C's cpow: a number to the power 0 is NaN where the logarithm of the number is not finite.
template <class R>
PARTITA_DEVICE Complex<R> power(Complex<R> a, Complex<R> b) {
  return to_complex<R>(wide_exp(wide_product(to_complex<double>(b), wide_log(to_complex<double>(a)))));
}

}  // namespace partita::loops::device
