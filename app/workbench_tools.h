#pragma once
#include <string>

#include "app/workbench.h"

namespace partita {

/// Our own backends and compilers, our store, and `program`, which is this one, for what a minification tries. `plant`:
/// "OP:wrong", "OP:crash" or "OP:hang" adds a backend, planted, that compiles this operator by a wrong rule; empty:
/// none. Error cli.usage.
Result<WorkbenchTools> program_tools(const std::string& plant, const std::string& program);

}  // namespace partita
