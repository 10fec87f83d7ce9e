#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace partita::codegen {

/// Runs a program without a shell; what it prints goes to the file `log`. Returns its exit code, nullopt when there is
/// no such program. Error `code` when it cannot be started.
Result<std::optional<int>> run_command(const std::vector<std::string>& words, const std::string& log, const char* code);

}  // namespace partita::codegen
