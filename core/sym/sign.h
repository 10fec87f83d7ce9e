#pragma once
#include "core/sym/sym_expr.h"

namespace partita {

/// What is known of an expression's sign, for all values of its symbols.
struct Sign {
  bool nonnegative = false, positive = false;  ///< positive implies nonnegative
  bool nonpositive = false, negative = false;  ///< negative implies nonpositive
};

/// The sign by sympy's assumptions, because these decide which Max(1, n) PyTorch prints: backed sizes (s0, s1, ...) are
/// integers from 1, unbacked ones (u0) are any integers, and nothing is known of a sum of several symbols minus a
/// constant. Ranges and hints are not used here; ShapeEnv has them.
Sign sign_of(SymExpr e);

}  // namespace partita
