#pragma once
// CUDA kernels that this machine's CPU runs: the same text, compiled as C++ with a prelude that gives it blocks,
// threads, shared memory, barriers, shuffles and atomics. It computes what a GPU would, and finds races on shared
// memory, barriers and exchanges that not all threads reach, and accesses out of bounds or not aligned.
#include <span>
#include <string>

#include "codegen/cuda/cuda_kernel.h"
#include "codegen/program/kernel_code.h"

namespace partita::codegen {

/// cuda_entry() of a kernel that emulate_cuda() compiled, whose functions run blocks.
KernelEntry emulated_entry(const CudaKernel& kernel);
/// What the code of these kernels is stored by.
std::string emulation_key(std::span<const CudaKernel> kernels);
/// Compiles kernels in `threads` threads. `loops`: what they were made of, for the names of their memory. The code
/// calls emulation_functions(). Errors: codegen.cuda_emulation (exit 3) where Clang's library is missing, and (exit 4)
/// what Clang says of a text that does not compile.
Result<ObjectCode> emulate_cuda(std::span<const CudaKernel> kernels, std::span<const loops::Kernel> loops, int threads,
                                bool keep_text);

}  // namespace partita::codegen
