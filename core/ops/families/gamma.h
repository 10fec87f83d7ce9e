#pragma once

// Gamma, zeta and error functions of a real argument in double precision that C++ does not have.
namespace partita::gamma {

/// Computed in the argument's precision throughout, as in PyTorch: near a pole the rounding of x decides the value.
template <class T>
T trigamma(T x);
template <class T>
T polygamma(int n, T x);                      ///< n >= 0
double zeta(double x, double q);              ///< Hurwitz zeta function: the sum of (k + q)^-x for k >= 0
double lower(double a, double x);             ///< regularised incomplete gamma function P(a, x)
double upper(double a, double x);             ///< Q(a, x) = 1 - P(a, x)
double multivariate_lgamma(double x, int p);  ///< log of the gamma function of p by p matrices
double erfcx(double x);                       ///< exp(x^2) erfc(x)
/// The logarithm of the normal distribution function, for float or double.
template <class T>
T log_ndtr(T x);
double ndtri(double p);  ///< inverse of the normal distribution function

}  // namespace partita::gamma
