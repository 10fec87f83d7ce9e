#pragma once
#include <vector>

#include "core/aot/staged_compiler.h"

namespace partita::codegen {

/// Loop IR, LLVM IR after optimisation, assembly, with lines linked to graph nodes. Errors are compile_kernels().
std::vector<KernelForm> cpu_kernel_forms();

}  // namespace partita::codegen
