#pragma once
#include "codegen/backends.h"

namespace partita {

/// The CPU compiler as a CompileFn: post-grad passes, plan, machine code. Graphs with symbolic sizes are planned anew
/// for each set of sizes they meet.
CompileFn cpu_compiler(const BackendOptions& options);
/// Error of its plan(): backend.symbolic when sizes are not concrete.
StagedCompiler cpu_stages(const BackendOptions& options);

}  // namespace partita
