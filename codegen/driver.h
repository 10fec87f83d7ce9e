#pragma once
#include "codegen/backends.h"

namespace partita {

/// The CPU compiler as a CompileFn: post-grad passes, plan, machine code. A graph with symbolic sizes gets a new plan
/// for each set of sizes that it is run with.
CompileFn cpu_compiler(const BackendOptions& options);
/// The CPU compiler in stages. Its plan() gives error backend.symbolic when sizes are not concrete.
StagedCompiler cpu_stages(const BackendOptions& options);

}  // namespace partita
