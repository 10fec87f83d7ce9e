#pragma once
#include "core/ops/record/record.h"

namespace partita {

/// Calls the function `register_NAME(OpTable&)` of every families/NAME.cpp and record/formula_NAME.cpp that has one:
/// CMake finds them.
void register_families(OpTable& table);

}  // namespace partita
