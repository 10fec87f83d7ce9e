#pragma once
// Matrix products, convolutions and attention as kernels of our own, made for one call: its dtypes, sizes and strides
// are numbers in the text.
#include <optional>
#include <string>
#include <vector>

#include "codegen/cpu/extern/extern.h"
#include "codegen/cuda/cuda_kernel.h"

namespace partita::codegen {

/// What the functions of a kernel are called with beside the call's own.
struct MatrixNames {
  std::string symbol;       ///< begins their names
  std::size_t symbols = 0;  ///< of the program's sizes, whose values they take and do not read
};
/// A call's kernel. Its functions take their arguments as a CudaKernel's do.
struct MatrixKernel {
  loops::Kernel shape;       ///< its buffers, name and origins; no body
  CudaKernel kernel;         ///< without functions where the call has nothing to compute
  std::vector<int> buffers;  ///< the plan's, in the order of the pointers
  double operations = 0;     ///< additions and multiplications of a run
};
/// nullopt, with the reason in `why_not`, for what has no kernel here:
/// other routines, complex numbers, symbolic sizes. The call's epilogue is not looked at.
std::optional<MatrixKernel> matrix_kernel(const ExternContext& context, const MatrixNames& names, std::string& why_not);
/// The routines that matrix_kernel() has kernels for.
std::vector<LibraryRoutine> matrix_routines();

}  // namespace partita::codegen
