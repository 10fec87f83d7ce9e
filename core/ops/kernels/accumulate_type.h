#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "core/tensor/dtype.h"

namespace partita {

/// The type sums run in, rounded once at their end: double for every float, int64 for integers and bool.
template <class T>
using AccumulateType =
    std::conditional_t<std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>,
                       std::complex<double>, std::conditional_t<is_integral_type<T>, std::int64_t, double>>;
/// Its dtype.
inline DType accumulate_dtype(DType t) {
  return is_complex(t) ? DType::Complex128 : is_floating(t) ? DType::Float64 : DType::Int64;
}

}  // namespace partita
