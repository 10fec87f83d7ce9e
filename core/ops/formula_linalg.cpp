// Formula functions over matrices and batches of matrices.
#include "core/ops/formula_functions.h"
#include "core/ops/record.h"

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
  std::vector<std::pair<std::string, Arg>> names = {{"P", f.args[2]}, {"L", f.args[3]}, {"U", f.args[4]}};
  auto build = [&](const char* formula) { return f.build.expression(formula, names); };
  auto bind = [&](const char* name, const char* formula) { names.emplace_back(name, build(formula)); };
  names.emplace_back("gL", f.has(0) ? f.args[0] : build("zeros_like(L)"));
  names.emplace_back("gU", f.has(1) ? f.args[1] : build("zeros_like(U)"));
  std::int64_t m = size_from_end(f.tensor(3), 2), k = size_from_end(f.tensor(3), 1), n = size_from_end(f.tensor(4), 1);
  names.emplace_back("k", k);
  names.emplace_back("m", m);
  names.emplace_back("n", n);
  bool wide = n > k, tall = m > k;
  bind("L1", tall ? "aten.slice.Tensor(L, -2, 0, k)" : "L");
  bind("gL1", tall ? "aten.slice.Tensor(gL, -2, 0, k)" : "gL");
  bind("U1", wide ? "aten.slice.Tensor(U, -1, 0, k)" : "U");
  bind("gU1", wide ? "aten.slice.Tensor(gU, -1, 0, k)" : "gU");
  bind("low", "matmul(mH(L1), gL1)");
  bind("up", "matmul(gU1, mH(U1))");
  if (wide) {
    bind("U2", "aten.slice.Tensor(U, -1, k, n)");
    bind("gU2", "aten.slice.Tensor(gU, -1, k, n)");
    bind("low2", "low - matmul(gU2, mH(U2))");
  }
  if (tall) {
    bind("L2", "aten.slice.Tensor(L, -2, k, m)");
    bind("gL2", "aten.slice.Tensor(gL, -2, k, m)");
    bind("up2", "up - matmul(mH(L2), gL2)");
  }
  bind("phi", wide ? "tril(low2, -1) + triu(up)" : tall ? "tril(low, -1) + triu(up2)" : "tril(low, -1) + triu(up)");
  bind("right", "linalg_solve_triangular(mH(U1), phi, upper=False, left=False)");
  bind("A1", "linalg_solve_triangular(mH(L1), right, upper=True, unitriangular=True)");
  if (wide)
    bind("A", "cat([A1, linalg_solve_triangular(mH(L1), gU2, upper=True, unitriangular=True)], -1)");
  else if (tall)
    bind("A", "cat([A1, linalg_solve_triangular(mH(U1), gL2, upper=False, left=False)], -2)");
  else
    bind("A", "A1");
  return build("matmul(P, A)");
}

/// lu_factor_backward(grad, LU, pivots)
Arg lu_factor_backward(const FormulaCall& f) {
  std::int64_t k = std::min(size_from_end(f.tensor(1), 2), size_from_end(f.tensor(1), 1));
  Arg factors = f("lu_unpack(x1, x2)");
  Arg low = f("tril(aten.slice.Tensor(x0, -1, 0, k), -1)", {{"k", k}});
  Arg up = f("triu(aten.slice.Tensor(x0, -2, 0, k))", {{"k", k}});
  return f("lu_backward(low, up, F[0], F[1], F[2])", {{"low", low}, {"up", up}, {"F", factors}});
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

/// lu_diagonal_solve(d, LU, pivots): A^-H d, with one number d for each matrix. Zeros on U's diagonal are replaced by
/// tiny numbers, since a determinant has a gradient for singular matrices too.
Arg lu_diagonal_solve(const FormulaCall& f) {
  DType dtype = f.tensor(1).dtype;
  double eps = real_of(dtype) == DType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  Arg d = f.tensor(0).dtype == dtype ? f.args[0]
                                     : Arg(f.build.call("aten._to_copy.default", {f.args[0]}, {{"dtype", dtype}}));
  Arg diagonal = f("diag_embed(expand(unsqueeze(d, -1), sizes(x2)))", {{"d", d}});
  Arg zero = f("eq(diagonal(x1, 0, -2, -1), 0)");
  Arg moved = f.build.call("aten._to_copy.default", {zero}, {{"dtype", dtype}});
  Arg lu = f("x1 + diag_embed(moved * eps)", {{"moved", moved}, {"eps", eps * eps}});
  return f("linalg_lu_solve(lu, x2, d, adjoint=True)", {{"lu", lu}, {"d", diagonal}});
}

/// cholesky_backward(grad, upper, factor)
Arg cholesky_backward(const FormulaCall& f) {
  const bool upper = f.flag(1);
  std::vector<std::pair<std::string, Arg>> names = {{"L", upper ? f("mH(x2)") : f.args[2]},
                                                    {"g", upper ? f("mH(x0)") : f.args[0]}};
  auto bind = [&](const char* name, const char* formula) {
    names.emplace_back(name, f.build.expression(formula, names));
  };
  bind("LhG", "matmul(mH(L), g)");
  bind("low", "tril(LhG)");
  bind("S", "(low + mH(tril(LhG, -1))) * 0.5");
  bind("left", "linalg_solve_triangular(mH(L), S, upper=True)");
  return f.build.expression("linalg_solve_triangular(L, left, upper=False, left=False)", names);
}

/// pinv_backward(grad, pseudo-inverse, A). The products are over the smaller side of A.
Arg pinv_backward(const FormulaCall& f) {
  std::vector<std::pair<std::string, Arg>> names = {{"p", f.args[1]}, {"A", f.args[2]}};
  auto bind = [&](const char* name, const char* formula) {
    names.emplace_back(name, f.build.expression(formula, names));
  };
  names.emplace_back("gh", f("mH(x0)"));
  bind("ph", "mH(p)");
  if (size_from_end(f.tensor(2), 2) <= size_from_end(f.tensor(2), 1)) {
    bind("K", "matmul(gh, p)");
    bind("Kph", "matmul(K, ph)");
    return f.build.expression(
        "Kph - mH(matmul(p, K)) - matmul(matmul(A, p), Kph) + matmul(matmul(ph, p), gh - matmul(K, A))", names);
  }
  bind("K", "matmul(p, gh)");
  bind("phK", "matmul(ph, K)");
  return f.build.expression(
      "phK - mH(matmul(K, p)) + matmul(matmul(gh - matmul(A, K), p), ph) - matmul(matmul(phK, p), A)", names);
}

}  // namespace

void add_matrix_formulas(OpTable& t) {
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
