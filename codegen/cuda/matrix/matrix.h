#pragma once
// Matrix products, convolutions, attention and scans as kernels of our own, made for one call: its dtypes, and sizes
// and strides that are numbers, stand in the text; symbols are arguments.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_kernel.h"
#include "codegen/program/extern.h"

namespace partita::codegen {

/// What the functions of a kernel are called with beside the call's own.
struct MatrixNames {
  std::string symbol;                         ///< begins their names
  std::vector<std::string> symbols = {};      ///< of the program's sizes, which they take in this order
  std::map<std::string, std::int64_t> hints;  ///< values of the symbols, by which tiles are chosen
};
/// A call's kernel. Its functions take their arguments as a CudaKernel's do.
struct MatrixKernel {
  loops::Kernel shape;       ///< its buffers, name and origins; no body
  CudaKernel kernel;         ///< without functions where the call has nothing to compute
  std::vector<int> buffers;  ///< the plan's, in the order of the pointers
  double operations = 0;     ///< additions and multiplications of a run
  bool does_work = false;    ///< the call's epilogue, too
};
/// nullopt, with the reason in `why_not`, for what has no kernel here:
/// other routines, complex numbers, symbols where a number decides the text.
std::optional<MatrixKernel> matrix_kernel(const ExternContext& context, const MatrixNames& names, std::string& why_not);
/// The routines that matrix_kernel() has kernels for.
std::vector<LibraryRoutine> matrix_routines();

}  // namespace partita::codegen
