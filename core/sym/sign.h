#pragma once
#include "core/sym/sym_expr.h"

namespace partita {

/// What is known of an expression's sign for every value its symbols may have.
struct Sign {
  bool nonnegative = false, positive = false;  ///< positive implies nonnegative
  bool nonpositive = false, negative = false;  ///< negative implies nonpositive
};

/// As sympy's assumptions say it, since they decide which Max(1, n) PyTorch prints: backed sizes (s0, s1, ...) are
/// integers from 1, unbacked ones (u0) any integers, and of a sum of several symbols less a constant nothing is known.
/// Ranges and hints are ShapeEnv's.
Sign sign_of(SymExpr e);

}  // namespace partita
