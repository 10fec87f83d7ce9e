#pragma once
#include "codegen/cuda/matrix/matrix.h"

namespace partita::codegen {

// The kernels of routines that go along the rows of one dimension; contracts as matrix_kernel().

/// cumsum, cumprod, cummax, cummin and logcumsumexp.
std::optional<MatrixKernel> scan_kernel(const ExternContext& context, const MatrixNames& names, std::string& why_not);

}  // namespace partita::codegen
