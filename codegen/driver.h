#pragma once
#include "codegen/backends.h"

namespace partita {

/// The CPU compiler as a CompileFn: post-grad passes, plan, machine code. A graph with symbolic sizes gets a new plan
/// for each set of sizes that it is run with.
CompileFn cpu_compiler(const BackendOptions& options);
/// The compiler of CUDA kernels for this machine's device: the same stages. Where there is no device, each graph is
/// refused by error cuda.device.
CompileFn cuda_compiler(const BackendOptions& options);
/// The cache of the CPU compiler; null where there is none: without a store, and for workers.
std::shared_ptr<const GraphCache> cpu_cache(const BackendOptions& options);
/// The CPU compiler in stages. Its plan() gives error backend.symbolic when sizes are not concrete.
StagedCompiler cpu_stages(const BackendOptions& options);

}  // namespace partita
