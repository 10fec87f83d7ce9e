#pragma once
// LAPACK by the type of its operands. Matrices are column-major; a return value above zero is what the routine says of
// the numbers ("singular"), which operators report as `info`.
#include <complex>

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {

namespace lapack {

/// Not-a-numbers go through, as in PyTorch; LAPACKE would refuse them.
inline const bool nans_pass = (LAPACKE_set_nancheck(0), true);

inline int checked(lapack_int info, const char* routine) {
  if (info < 0) fail(std::string(routine) + " refused its argument " + std::to_string(-info));
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
#undef PARTITA_LAPACK

}  // namespace lapack

/// f.operator()<T>() for the dtypes LAPACK computes in; fails, naming `what`, for others.
template <class F>
decltype(auto) dispatch_lapack(DType t, const char* what, F&& f) {
  switch (t) {
    case DType::Complex64:
      return f.template operator()<std::complex<float>>();
    case DType::Complex128:
      return f.template operator()<std::complex<double>>();
    default:
      return dispatch_floating(t, what, std::forward<F>(f));
  }
}

}  // namespace partita::kernels
