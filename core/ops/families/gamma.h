#pragma once

// The gamma, zeta and error functions of a real argument in double precision that C++ does not have.
namespace partita::gamma {

/// In its argument's precision throughout, as PyTorch's: near a pole the rounding of x decides the value.
template <class T>
T trigamma(T x);
template <class T>
T polygamma(int n, T x);           ///< n >= 0
double zeta(double x, double q);   ///< Hurwitz's: the sum of (k + q)^-x
double lower(double a, double x);  ///< regularised incomplete gamma function P(a, x)
double upper(double a, double x);  ///< Q(a, x) = 1 - P(a, x)
double multivariate_lgamma(double x, int p);
double erfcx(double x);  ///< exp(x^2) erfc(x)
/// Logarithm of the normal distribution function; float or double.
template <class T>
T log_ndtr(T x);
double ndtri(double p);  ///< its inverse

}  // namespace partita::gamma
