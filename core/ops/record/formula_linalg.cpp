// Formula functions over matrices and batches of matrices.
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// matmul decomposed to mm and bmm, as autograd traces it.
Arg matmul(const FormulaCall& f) {
  Node* product = f.build.call("aten.matmul.default", {f.args[0], f.args[1]});
  Arg result = unwrap(decompose(*product));
  f.build.graph.erase(product);
  return result;
}

Arg transpose(const FormulaCall& f) {
  return f.build.call("aten.transpose.int", {f.args[0], -2, -1});
}
Arg adjoint(const FormulaCall& f) {
  return f("conj(mT(x0))");
}

std::int64_t size_from_end(const TensorMeta& t, std::size_t i) {
  SymExpr size = t.sizes[t.dim() - i];
  if (!size.is_int()) fail_unsupported("the gradient of a factorisation of symbolic size");
  return size.as_int();
}

/// lu_backward(grad of L, grad of U, P, L, U): the gradient of A = P L U. A gradient that does not exist is None. For a
/// wide A the columns of U beyond the square depend on L; for a tall A the rows of L beyond the square depend on U.
Arg lu_backward(const FormulaCall& f) {
  std::int64_t m = size_from_end(f.tensor(3), 2), k = size_from_end(f.tensor(3), 1), n = size_from_end(f.tensor(4), 1);
  return build_program(
      f.build,
      "gL = zeros_like(L) if gL is None else gL; "
      "gU = zeros_like(U) if gU is None else gU; "
      "L1 = aten.slice.Tensor(L, -2, 0, k) if tall else L; "
      "gL1 = aten.slice.Tensor(gL, -2, 0, k) if tall else gL; "
      "U1 = aten.slice.Tensor(U, -1, 0, k) if wide else U; "
      "gU1 = aten.slice.Tensor(gU, -1, 0, k) if wide else gU; "
      "low = matmul(mH(L1), gL1); "
      "up = matmul(gU1, mH(U1)); "
      "gU2 = aten.slice.Tensor(gU, -1, k, n) if wide else None; "
      "low = low - matmul(gU2, mH(aten.slice.Tensor(U, -1, k, n))) if wide else low; "
      "gL2 = aten.slice.Tensor(gL, -2, k, m) if tall else None; "
      "up = up - matmul(mH(aten.slice.Tensor(L, -2, k, m)), gL2) if tall else up; "
      "right = linalg_solve_triangular(mH(U1), tril(low, -1) + triu(up), upper=False, left=False); "
      "A = linalg_solve_triangular(mH(L1), right, upper=True, unitriangular=True); "
      "A = cat([A, linalg_solve_triangular(mH(L1), gU2, upper=True, unitriangular=True)], -1) if wide else A; "
      "A = cat([A, linalg_solve_triangular(mH(U1), gL2, upper=False, left=False)], -2) if tall else A; "
      "matmul(P, A)",
      {{"gL", f.args[0]},
       {"gU", f.args[1]},
       {"P", f.args[2]},
       {"L", f.args[3]},
       {"U", f.args[4]},
       {"k", k},
       {"m", m},
       {"n", n},
       {"wide", n > k},
       {"tall", m > k}});
}

/// lu_factor_backward(grad, LU, pivots)
Arg lu_factor_backward(const FormulaCall& f) {
  std::int64_t k = std::min(size_from_end(f.tensor(1), 2), size_from_end(f.tensor(1), 1));
  return f(
      "F = lu_unpack(x1, x2); "
      "low = tril(aten.slice.Tensor(x0, -1, 0, k), -1); "
      "lu_backward(low, triu(aten.slice.Tensor(x0, -2, 0, k)), F[0], F[1], F[2])",
      {{"k", k}});
}

/// lu_data_backward(grad of L, grad of U, LU), either gradient None
Arg lu_data_backward(const FormulaCall& f) {
  std::int64_t m = size_from_end(f.tensor(2), 2), n = size_from_end(f.tensor(2), 1), k = std::min(m, n);
  Arg low, up;
  if (f.has(0)) low = f(n > k ? "constant_pad_nd(tril(x0, -1), [0, more], 0.0)" : "tril(x0, -1)", {{"more", n - k}});
  if (f.has(1)) up = f(m > k ? "constant_pad_nd(triu(x1), [0, 0, 0, more], 0.0)" : "triu(x1)", {{"more", m - k}});
  if (low.is_none() || up.is_none()) return low.is_none() ? up : low;
  return f("low + up", {{"low", low}, {"up", up}});
}

/// lu_diagonal_solve(d, LU, pivots, adjoint): A^-1 d, or A^-H d, with one number d for each matrix A of the factors.
/// Zeros on U's diagonal are replaced by tiny numbers, since a determinant has a gradient for singular matrices too.
Arg lu_diagonal_solve(const FormulaCall& f) {
  DType dtype = f.tensor(1).dtype;
  double eps = real_of(dtype) == DType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  return f(
      "d = diag_embed(expand(unsqueeze(in_dtype(x0, dtype(x1)), -1), sizes(x2))); "
      "moved = in_dtype(eq(diagonal(x1, 0, -2, -1), 0), dtype(x1)); "
      "lu = x1 + diag_embed(moved * eps); linalg_lu_solve(lu, x2, d, adjoint=x3)",
      {{"eps", eps * eps}});
}

/// cholesky_backward(grad, upper, factor)
Arg cholesky_backward(const FormulaCall& f) {
  return f(
      "L = mH(x2) if x1 else x2; "
      "g = mH(x0) if x1 else x0; "
      "LhG = matmul(mH(L), g); "
      "low = tril(LhG); "
      "S = (low + mH(tril(LhG, -1))) * 0.5; "
      "left = linalg_solve_triangular(mH(L), S, upper=True); "
      "linalg_solve_triangular(L, left, upper=False, left=False)");
}

/// pinv_backward(grad, pseudo-inverse, A). The products are over the smaller side of A.
Arg pinv_backward(const FormulaCall& f) {
  if (size_from_end(f.tensor(2), 2) <= size_from_end(f.tensor(2), 1))
    return f(
        "gh = mH(x0); ph = mH(x1); K = matmul(gh, x1); Kph = matmul(K, ph); "
        "Kph - mH(matmul(x1, K)) - matmul(matmul(x2, x1), Kph) + matmul(matmul(ph, x1), gh - matmul(K, x2))");
  return f(
      "gh = mH(x0); ph = mH(x1); K = matmul(x1, gh); phK = matmul(ph, K); "
      "phK - mH(matmul(K, x1)) + matmul(matmul(gh - matmul(x2, K), x1), ph) - matmul(matmul(phK, x1), x2)");
}

}  // namespace

void register_formula_linalg(OpTable& t) {
  t.add_formula_functions({
      {"matmul", matmul},
      {"mT", transpose},
      {"mH", adjoint},
      {"lu_backward", lu_backward},
      {"lu_factor_backward", lu_factor_backward},
      {"lu_data_backward", lu_data_backward},
      {"lu_diagonal_solve", lu_diagonal_solve},
      {"cholesky_backward", cholesky_backward},
      {"pinv_backward", pinv_backward},
  });
}

}  // namespace partita
