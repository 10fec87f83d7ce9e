#pragma once
#include "core/tensor/tensor.h"

namespace partita::kernels {

/// Discrete Fourier transform of every line along `dim`, in place and without a factor. `t` is complex128 and
/// row-major; `forward` has the exponent's negative sign.
void fourier(const Tensor& t, std::int64_t dim, bool forward);

}  // namespace partita::kernels
