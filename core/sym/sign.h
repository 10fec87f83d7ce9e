#pragma once
#include "core/sym/sym_expr.h"

namespace partita {

/// What is known of an expression's sign, for all values of its symbols.
struct Sign {
  bool nonnegative = false, positive = false;  ///< positive implies nonnegative
  bool nonpositive = false, negative = false;  ///< negative implies nonpositive
};

/// What symbols may be: any integers, as an integer input is, or sizes, of which backed ones (s0, s1, ...) are integers
/// from 1 by sympy's assumptions and unbacked ones (u0) any.
enum class Symbols : bool { Integers, Sizes };

/// The sign as far as sympy tells it, because this decides which Max(1, n) PyTorch prints: nothing is known of a sum of
/// several symbols minus a constant. Ranges and hints are not used here; ShapeEnv has them.
Sign sign_of(SymExpr e, Symbols symbols);

}  // namespace partita
