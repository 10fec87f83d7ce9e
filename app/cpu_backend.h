#pragma once
#include "app/backends.h"

namespace partita {

/// The CPU compiler as a CompileFn: post-grad passes, plan, machine code. Graphs with symbolic sizes are planned anew
/// for each set of sizes they meet.
CompileFn cpu_compiler(const BackendOptions& options);

}  // namespace partita
