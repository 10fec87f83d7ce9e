#pragma once
// LAPACK by the type of its operands. Matrices are column-major. A return value above zero is a finding about the
// numbers ("singular"), which operators return as `info`.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {

namespace lapack {

/// Lets NaN through, as PyTorch does. LAPACKE would refuse it.
inline const bool nans_pass = (LAPACKE_set_nancheck(0), true);

/// The info that a routine returned: 0, or where it failed. Raises when an argument was wrong.
inline int checked(lapack_int info, const char* routine) {
  if (info < 0) fail(std::string(routine) + " does not accept its argument " + std::to_string(-info));
  return static_cast<int>(info);
}

#define PARTITA_LAPACK(name, s, d, c, z)                       \
  template <class T, class... Args>                            \
  int name(Args... args) {                                     \
    lapack_int info;                                           \
    if constexpr (std::is_same_v<T, float>)                    \
      info = LAPACKE_##s(LAPACK_COL_MAJOR, args...);           \
    else if constexpr (std::is_same_v<T, double>)              \
      info = LAPACKE_##d(LAPACK_COL_MAJOR, args...);           \
    else if constexpr (std::is_same_v<T, std::complex<float>>) \
      info = LAPACKE_##c(LAPACK_COL_MAJOR, args...);           \
    else                                                       \
      info = LAPACKE_##z(LAPACK_COL_MAJOR, args...);           \
    return checked(info, #name);                               \
  }
PARTITA_LAPACK(getrf, sgetrf, dgetrf, cgetrf, zgetrf)
PARTITA_LAPACK(getrs, sgetrs, dgetrs, cgetrs, zgetrs)
PARTITA_LAPACK(potrf, spotrf, dpotrf, cpotrf, zpotrf)
PARTITA_LAPACK(potri, spotri, dpotri, cpotri, zpotri)
PARTITA_LAPACK(potrs, spotrs, dpotrs, cpotrs, zpotrs)
PARTITA_LAPACK(sytrf, ssytrf, dsytrf, csytrf, zsytrf)
PARTITA_LAPACK(sytrs, ssytrs, dsytrs, csytrs, zsytrs)
PARTITA_LAPACK(hetrf, ssytrf, dsytrf, chetrf, zhetrf)
PARTITA_LAPACK(hetrs, ssytrs, dsytrs, chetrs, zhetrs)
PARTITA_LAPACK(heevd, ssyevd, dsyevd, cheevd, zheevd)
PARTITA_LAPACK(gesdd, sgesdd, dgesdd, cgesdd, zgesdd)
PARTITA_LAPACK(geqrf, sgeqrf, dgeqrf, cgeqrf, zgeqrf)
PARTITA_LAPACK(orgqr, sorgqr, dorgqr, cungqr, zungqr)
PARTITA_LAPACK(ormqr, sormqr, dormqr, cunmqr, zunmqr)
PARTITA_LAPACK(gels, sgels, dgels, cgels, zgels)
PARTITA_LAPACK(gelsy, sgelsy, dgelsy, cgelsy, zgelsy)
PARTITA_LAPACK(gelsd, sgelsd, dgelsd, cgelsd, zgelsd)
PARTITA_LAPACK(gelss, sgelss, dgelss, cgelss, zgelss)
#undef PARTITA_LAPACK

/// Eigenvalues and right eigenvectors of a general n x n matrix, which is overwritten; `vectors` [n, n], column-major.
template <class T>
int geev(int n, T* a, int lda, std::complex<decltype(std::abs(T()))>* values,
         std::complex<decltype(std::abs(T()))>* vectors) {
  using Real = decltype(std::abs(T()));
  if constexpr (std::is_same_v<T, std::complex<float>>)
    return checked(LAPACKE_cgeev(LAPACK_COL_MAJOR, 'N', 'V', n, a, lda, values, nullptr, 1, vectors, n), "geev");
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return checked(LAPACKE_zgeev(LAPACK_COL_MAJOR, 'N', 'V', n, a, lda, values, nullptr, 1, vectors, n), "geev");
  else {
    auto size = static_cast<std::size_t>(n);
    std::vector<Real> re(size), im(size), v(size * size);
    int info;
    if constexpr (std::is_same_v<T, float>)
      info = checked(
          LAPACKE_sgeev(LAPACK_COL_MAJOR, 'N', 'V', n, a, lda, re.data(), im.data(), nullptr, 1, v.data(), n), "geev");
    else
      info = checked(
          LAPACKE_dgeev(LAPACK_COL_MAJOR, 'N', 'V', n, a, lda, re.data(), im.data(), nullptr, 1, v.data(), n), "geev");
    for (std::size_t j = 0; j < size; ++j) values[j] = {re[j], im[j]};
    // A conjugate pair of eigenvalues shares two real columns: v[j] +- i v[j + 1].
    for (std::size_t j = 0; j < size; ++j) {
      bool pair = im[j] != 0 && j + 1 < size;
      for (std::size_t i = 0; i < size; ++i) {
        std::complex<Real> x(v[j * size + i], pair ? v[(j + 1) * size + i] : Real(0));
        vectors[j * size + i] = x;
        if (pair) vectors[(j + 1) * size + i] = std::conj(x);
      }
      if (pair) ++j;
    }
    return info;
  }
}

/// Singular values of an m x n matrix, which is overwritten. `job` selects the vectors: none ('N'), the first min(m, n)
/// ('S') or all ('A'). Returns false when they are not found. gesdd may not terminate for numbers that are not finite;
/// so, as in PyTorch, NaN is refused (false), and infinities make all results NaN.
template <class T>
bool singular_values(char job, int m, int n, T* a, decltype(std::abs(T()))* values, T* left, T* right) {
  using Real = decltype(std::abs(T()));
  const int k = std::min(m, n), columns = job == 'A' ? m : job == 'S' ? k : 0, rows = job == 'A' ? n : columns;
  auto area = [](int x, int y) { return static_cast<std::ptrdiff_t>(x) * y; };
  bool finite = true;
  for (const T* x = a; x < a + area(m, n); ++x) {
    if (std::isnan(std::real(*x)) || std::isnan(std::imag(*x))) return false;
    finite = finite && !std::isinf(std::real(*x)) && !std::isinf(std::imag(*x));
  }
  if (finite) return gesdd<T>(job, m, n, a, m, values, left, m, right, std::max(rows, 1)) <= 0;
  constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
  std::fill_n(values, k, nan);
  std::fill_n(left, area(m, columns), T(nan));
  std::fill_n(right, area(rows, n), T(nan));
  return true;
}

}  // namespace lapack

}  // namespace partita::kernels
