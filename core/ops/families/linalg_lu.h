#pragma once
// LU factors with partial pivoting, and solutions by them.
#include "core/ops/families/linalg.h"

namespace partita {

/// Factorises matrices in place. Pivots are row numbers from 1, `smaller side` of them for each matrix.
struct LuFactors {
  Matrices lu;
  Tensor pivots, info;

  explicit LuFactors(Matrices m);
};
/// Fails with `what` in front when a matrix was singular and the call asks for errors (check_errors).
void check_info(const EvalCall& c, const Tensor& info, const char* what);
/// op(A) X = B by A's factors; `x` holds B and becomes X. op as LAPACK names it: 'N', 'T', 'C'.
void solve_factored(const Matrices& lu, const Tensor& pivots, const Matrices& x, char op);
/// A X = B, or X A = B when not `left`, with A's adjoint in its place when `adjoint`; a tensor of B's sizes.
Tensor solve_with(const Matrices& lu, const Tensor& pivots, const Tensor& b, const Sizes& batch, bool left,
                  bool adjoint);

}  // namespace partita
