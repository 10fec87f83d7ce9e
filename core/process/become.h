#pragma once
#include <string>
#include <vector>

#include "core/base/result.h"

namespace partita {

/// Turns this process into a program, with its words (the first is its path). Returns only when it cannot: error
/// process.start.
Diagnostic become(std::vector<std::string> words);

}  // namespace partita
