#pragma once
#include <string>

#include "views/frame/tools.h"

namespace partita {

/// What this program gives the window: its backends, compilers and store. `program` is the path of the executable,
/// which a minification starts for its tries. `plant`: "OP:wrong", "OP:crash" or "OP:hang" adds a backend named
/// "planted" that compiles this operator by a wrong rule; empty: none. Error cli.usage.
Result<views::WorkbenchTools> program_tools(const std::string& plant, const std::string& program);

}  // namespace partita
