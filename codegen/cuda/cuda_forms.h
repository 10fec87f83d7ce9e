#pragma once
#include <vector>

#include "codegen/cuda/cuda_kernel.h"
#include "core/aot/staged_compiler.h"

namespace partita::codegen {

/// The CUDA kernels that a step of the plan launches: its own, or those of a call that has kernels of our own, and the
/// work after a call. Empty for a call alone. Error codegen.cuda names what has no CUDA form.
Result<std::vector<CudaKernel>> cuda_kernels_of_step(const schedule::Plan& plan, std::size_t step);

/// Loop IR, CUDA C++, PTX for the last architecture of the setting cuda_architectures, its machine code, and what the
/// kernels need on each of these architectures: launches, registers, spills, memory, occupancy. Errors: codegen.cuda,
/// find_cuda_compiler()'s and compile_cuda()'s; cuda.disassembler (exit 3) without nvdisasm.
std::vector<KernelForm> cuda_kernel_forms();

}  // namespace partita::codegen
