#pragma once
// LU factors with partial pivoting, and solutions by them.
#include "core/ops/families/linalg.h"

namespace partita {

/// LU factors of matrices, computed in place. Pivots are row numbers from 1; each matrix has as many as its smaller
/// side.
struct LuFactors {
  Matrices lu;
  Tensor pivots, info;

  explicit LuFactors(Matrices m);
};
/// Fails if a matrix was singular and the call asks for errors (check_errors). `what` begins the message.
void check_info(const EvalCall& c, const Tensor& info, const char* what);
/// Solves op(A) X = B by A's factors. `x` holds B and becomes X. op is LAPACK's 'N', 'T' or 'C'.
void solve_factored(const Matrices& lu, const Tensor& pivots, const Matrices& x, char op);
/// Solves A X = B, or X A = B when not `left`; with `adjoint` A's adjoint takes its place. Returns X, with B's sizes.
Tensor solve_with(const Matrices& lu, const Tensor& pivots, const Tensor& b, const Sizes& batch, bool left,
                  bool adjoint);

}  // namespace partita
