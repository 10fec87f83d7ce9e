#pragma once
// CUDA kernels that this machine's CPU runs: the same text, compiled as C++ with a prelude that gives it blocks,
// threads, shared memory, barriers, shuffles and atomics. It computes what a GPU would, and finds races on shared
// memory, barriers and exchanges that not all threads reach, and accesses out of bounds or not aligned.
#include <span>
#include <string>
#include <vector>

#include "codegen/cpu/jit.h"
#include "codegen/cuda/cuda_kernel.h"
#include "codegen/program/extern.h"
#include "core/schedule/plan.h"

namespace partita::codegen {

/// cuda_target() for this machine, whose threads run the blocks.
loops::Target emulated_target(int threads);
/// Puts the memory and the calls of a plan for CUDA on the CPU. Its kernels stay CUDA's.
void keep_on_host(schedule::Plan& plan);

/// How to call a kernel that emulate_cuda() compiled. An iteration is a block.
KernelEntry emulated_entry(const CudaKernel& kernel);
/// What the code of these kernels is stored by.
std::string emulation_key(std::span<const CudaKernel> kernels);
/// Compiles kernels in `threads` threads. `loops`: what they were made of, for the names of their memory. The code
/// calls emulation_functions(). Errors: codegen.cuda_emulation (exit 3) where Clang's library is missing, and (exit 4)
/// what Clang says of a text that does not compile.
Result<ObjectCode> emulate_cuda(std::span<const CudaKernel> kernels, std::span<const loops::Kernel> loops, int threads,
                                bool keep_text);
/// Prepares the operator record's evaluation, of calls that make_program() left as they are.
Result<Prepared> prepare_emulated(const ExternContext& context, std::string& why_not);

}  // namespace partita::codegen
