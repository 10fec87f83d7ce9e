#pragma once
#include <vector>

#include "core/diff/diff.h"

namespace partita {

/// Adds a row for each place where the calls of two logs of DebugMode are others. Logs of more runs, and those of one
/// alone, have none.
void compare_calls(const std::vector<Run>& runs, std::vector<DiffRow>& rows);

}  // namespace partita
