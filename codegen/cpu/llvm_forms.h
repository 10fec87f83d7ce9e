#pragma once
#include <optional>
#include <vector>

#include "codegen/program/executable.h"
#include "core/aot/staged_compiler.h"

namespace partita::codegen {

/// The kernel that a step of the plan runs: its own, or the work after a call; nullopt for a call alone.
Result<std::optional<loops::Kernel>> kernel_of_step(const schedule::Plan& plan, std::size_t step);

/// Loop IR, LLVM IR after optimisation, assembly. Errors are compile_kernels().
std::vector<KernelForm> cpu_kernel_forms();

/// See StagedCompiler::measure. Kernels on a device are timed by its events.
Result<StagedCompiler::Measured> measure_cpu(const StagedCompiler::Planned& planned, const CpuOptions& options,
                                             const std::vector<Value>& inputs, double seconds);

}  // namespace partita::codegen
