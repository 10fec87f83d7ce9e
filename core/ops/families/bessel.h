#pragma once

// Bessel and Airy functions of a real argument in double precision. NaN outside the domain; poles give their infinity.
namespace partita::bessel {

/// Of the first kind (j), the second (y), and modified (i, k).
double j0(double x);
double j1(double x);
double y0(double x);  ///< -inf at 0
double y1(double x);
double i0(double x);
double i1(double x);
double i0e(double x);  ///< exp(-|x|) i0(x)
double i1e(double x);
double k0(double x);  ///< inf at 0
double k1(double x);
double k0e(double x);  ///< exp(x) k0(x)
double k1e(double x);
double airy_ai(double x);
double spherical_j0(double x);  ///< sin(x) / x

}  // namespace partita::bessel
