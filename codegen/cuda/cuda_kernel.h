#pragma once
#include <string>
#include <vector>

#include "codegen/program/kernel_entry.h"
#include "core/loops/target.h"

namespace partita::codegen {

/// A __global__ function and its launch. Grid and blocks have one dimension.
struct CudaFunction {
  std::string name;
  SymExpr blocks = 1;            ///< gridDim.x, of the kernel's symbols
  int threads = 1;               ///< blockDim.x
  std::size_t shared_bytes = 0;  ///< of dynamic shared memory
  bool cooperates = false;       ///< it has barriers, shuffles or shared memory: its threads need one another
};

/// A kernel of loop IR as CUDA C++. Its functions are launched in order in one stream; the end of each is a barrier for
/// the whole grid. Each takes a pointer for each non-scratch Kernel::buffers, in order; a pointer for each of
/// `workspace`; a `long long` for each symbol; and a pointer to a KernelFault. All memory
/// begins at multiples of 16 bytes. To be compiled without contraction (--fmad=false): each operator rounds on its own.
struct CudaKernel {
  struct Workspace {
    DType dtype = DType::Float32;
    SymExpr elements;  ///< global memory that only this kernel uses, uninitialised
  };
  std::string text;                     ///< without the prelude, which all kernels share
  std::vector<std::vector<int>> lines;  ///< where the text's lines come from, as LinkedText has it
  std::vector<CudaFunction> functions;
  std::vector<Workspace> workspace;
};

/// Writes a kernel. `symbol` begins the names of its functions; `symbols`: names in sizes. Error codegen.cuda (exit 3)
/// names what has no CUDA form.
Result<CudaKernel> emit_cuda(const loops::Kernel& kernel, const std::string& symbol,
                             const std::vector<std::string>& symbols);

/// How to call a kernel. An iteration of a phase is a block.
KernelEntry cuda_entry(const CudaKernel& kernel);

/// A GPU to make loops and plans for, with the routines that are kernels of our own.
loops::Target cuda_target();

/// What the text of all kernels begins with: dtypes, the scalar operations, faults, warp and block reductions.
std::string_view cuda_prelude();

}  // namespace partita::codegen
