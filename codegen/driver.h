#pragma once
#include "codegen/backends.h"

namespace partita {

/// The CPU compiler as a CompileFn: post-grad passes, plan, machine code. A graph with symbolic sizes gets a new plan
/// for each set of sizes that it is run with. With BackendOptions::on_device, where there is no device, each graph is
/// refused by error cuda.device; error cuda.dtype for half types on a device that has no matrix instructions for them.
CompileFn cpu_compiler(const BackendOptions& options);
/// The cache of the CPU compiler; null where there is none: without a store, and for workers.
std::shared_ptr<const GraphCache> cpu_cache(const BackendOptions& options);
/// The CPU compiler in stages. Its plan() gives error backend.symbolic when sizes are not concrete.
StagedCompiler cpu_stages(const BackendOptions& options);

/// See Backend::place. Error cuda.device.
Status place_on_device(std::vector<Value>& values);

}  // namespace partita
