#pragma once
#include "core/base/result.h"

namespace partita {

/// Raised by arithmetic on symbols: an integer beyond 64 bits (sym.overflow) or a division by zero. Functions that
/// return a Result turn it into their error.
struct SymError {
  Diagnostic diagnostic;
};

}  // namespace partita
