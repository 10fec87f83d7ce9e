#pragma once
#include "core/tensor/tensor.h"

namespace partita::kernels {

/// The discrete Fourier transform of every line along `dim`, in place and without scaling. `t` is complex128 and
/// row-major. `forward` means that the exponent is negative.
void fourier(const Tensor& t, std::int64_t dim, bool forward);

}  // namespace partita::kernels
