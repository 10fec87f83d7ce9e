// Formula functions for the gradients of factorisations with orthogonal factors.
#include <limits>

#include "core/ops/record/formula_functions.h"

namespace partita {
namespace {

/// A sequence of steps: each evaluates an expression over the names bound so far and may bind its value to a name.
class Steps {
 public:
  Steps(Builder& build, std::vector<std::pair<std::string, Arg>> names) : build_(build), names_(std::move(names)) {}

  Arg operator()(const char* expression) { return build_.expression(expression, names_); }
  /// Binds a name; an earlier value of it is replaced.
  void set(std::string_view name, Arg value) {
    std::erase_if(names_, [&](const auto& n) { return n.first == name; });
    names_.emplace_back(name, std::move(value));
  }
  void set(std::string_view name, const char* expression) { set(name, (*this)(expression)); }

 private:
  Builder& build_;
  std::vector<std::pair<std::string, Arg>> names_;
};

bool less(const FormulaCall& f, SymExpr a, SymExpr b) {
  return f.guards().test(sym_lt(a, b), "the gradient of a factorisation");
}

/// svd_backward(gU, gS, gVh, U, S, Vh) for the reduced A = U diag(S) Vh. Gradients that do not exist are None.
Arg svd_backward(const FormulaCall& f) {
  bool has_u = f.has(0), has_s = f.has(1), has_v = f.has(2), complex = is_complex(f.tensor(3).dtype);
  SymExpr m = f.tensor(3).sizes[f.tensor(3).dim() - 2], n = f.tensor(5).sizes.back(), k = f.tensor(4).sizes.back();
  bool tall = less(f, k, m), wide = less(f, k, n);
  Steps s(f.build, {{"gU", f.args[0]},
                    {"gS", f.args[1]},
                    {"gVh", f.args[2]},
                    {"U", f.args[3]},
                    {"S", f.args[4]},
                    {"Vh", f.args[5]}});
  if (!has_u && !has_v) return s(wide ? "matmul(U * unsqueeze(gS, -2), Vh)" : "matmul(U, unsqueeze(gS, -1) * Vh)");
  // E_ij = S_j^2 - S_i^2 off the diagonal and 1 on it. The skew-Hermitian parts that are divided by E are 0 on a real
  // diagonal.
  s.set("S2", "S * S");
  s.set("E", "unsqueeze(S2, -2) - unsqueeze(S2, -1) + diag_embed(ones_like(S))");
  if (has_u) {
    s.set("UhgU", "matmul(mH(U), gU)");
    s.set("UhgU", "UhgU - mH(UhgU)");
    s.set("gA", "(UhgU / E) * unsqueeze(S, -2)");
  }
  if (has_v) {
    s.set("VhgV", "matmul(Vh, mH(gVh))");
    s.set("VhgV", "VhgV - mH(VhgV)");
    s.set("right", "unsqueeze(S, -1) * (VhgV / E)");
    s.set("gA", has_u ? "gA + right" : "right");
  }
  if (has_s) s.set("gA", "gA + diag_embed(gS)");
  if (complex && has_u && has_v) s.set("gA", "gA + diag_embed(diagonal(UhgU, 0, -2, -1) / (S * 2))");
  if (tall && has_u) {
    s.set("gA", "matmul(U, gA)");
    s.set("gUS", "gU / unsqueeze(S, -2)");
    return s("matmul(gA + gUS - matmul(U, matmul(mH(U), gUS)), Vh)");
  }
  if (wide && has_v) {
    s.set("gA", "matmul(gA, Vh)");
    s.set("SgV", "gVh / unsqueeze(S, -1)");
    return s("matmul(U, gA + SgV - matmul(matmul(SgV, mH(Vh)), Vh))");
  }
  return s(wide ? "matmul(matmul(U, gA), Vh)" : "matmul(U, matmul(gA, Vh))");
}

/// linalg_eig_backward(gL, gV, L, V, is_hermitian) for A = V diag(L) V^-1, where columns of V have norm 1. Gradients
/// that do not exist are None.
Arg linalg_eig_backward(const FormulaCall& f) {
  const bool hermitian = f.flag(4);
  Steps s(f.build, {{"gL", f.args[0]}, {"gV", f.args[1]}, {"L", f.args[2]}, {"V", f.args[3]}});
  if (!f.has(1)) {
    if (hermitian) return s("matmul(V * unsqueeze(gL, -2), mH(V))");
    return s("aten._linalg_solve_ex.default(mH(V), unsqueeze(gL, -1) * mH(V))[0]");
  }
  s.set("M", "matmul(mH(V), gV)");
  // For a Hermitian A, V is unitary: the gradient is projected onto the skew-Hermitian matrices, in whose directions V
  // can change.
  if (hermitian)
    s.set("M", "(M - mH(M)) * 0.5");
  else
    s.set("M", "M - matmul(mH(V), V * unsqueeze(real_of(diagonal(M, 0, -2, -1)), -2))");
  // E_ij = conj(L_j - L_i) off the diagonal. The diagonal of the result is the gradient of L.
  s.set("E", "conj(unsqueeze(L, -2) - unsqueeze(L, -1)) + diag_embed(ones_like(L))");
  s.set("M", "(M - diag_embed(diagonal(M, 0, -2, -1))) / E");
  if (f.has(0)) s.set("M", "M + diag_embed(gL)");
  if (hermitian) return s("matmul(V, matmul(M, mH(V)))");
  return s("aten._linalg_solve_ex.default(mH(V), matmul(M, mH(V)))[0]");
}

/// The real part of a complex tensor, in a real dtype.
Arg real_of_tensor(const FormulaCall& f) {
  if (!is_complex(f.tensor(0).dtype)) return f.args[0];
  return f("aten.select.int(aten.view_as_real.default(contiguous(x0)), -1, 0)");
}

/// linalg_qr_backward(gQ, gR, Q, R) for the reduced A = Q R. Gradients that do not exist are None.
Arg linalg_qr_backward(const FormulaCall& f) {
  bool has_q = f.has(0), has_r = f.has(1);
  SymExpr k = f.tensor(2).sizes.back(), n = f.tensor(3).sizes.back();
  bool wide = less(f, k, n);
  Steps s(f.build, {{"gQ", f.args[0]}, {"gR", f.args[1]}, {"Q", f.args[2]}, {"R", f.args[3]}});
  if (wide && has_r) {
    // A is wide: A = [A1 A2] = Q [R1 R2]. Since R2 = Q^H A2, the gradient of R2 contributes to those of Q and A2.
    s.set("k", f.build.size(k));
    s.set("n", f.build.size(n));
    s.set("gR2", "aten.slice.Tensor(gR, -1, k, n)");
    s.set("gR", "aten.slice.Tensor(gR, -1, 0, k)");
    s.set("more", "matmul(matmul(Q, aten.slice.Tensor(R, -1, k, n)), mH(gR2))");
    s.set("gQ", has_q ? "gQ + more" : "more");
    s.set("R", "aten.slice.Tensor(R, -1, 0, k)");
    s.set("gA2", "matmul(Q, gR2)");
    has_q = true;
  } else if (wide) {
    s.set("k", f.build.size(k));
    s.set("n", f.build.size(n));
    s.set("gA2", "zeros_like(aten.slice.Tensor(R, -1, k, n))");
    s.set("R", "aten.slice.Tensor(R, -1, 0, k)");
  }
  s.set("M", has_q && has_r ? "matmul(gR, mH(R)) - matmul(mH(Q), gQ)"
             : has_q        ? "-matmul(mH(Q), gQ)"
                            : "matmul(gR, mH(R))");
  // The Hermitian matrix with the upper triangle of M; its diagonal is the real part of M's.
  s.set("M", "triu(M, 1) + mH(triu(M, 1)) + diag_embed(real_part(diagonal(M, 0, -2, -1)))");
  s.set("gA", has_q ? "matmul(Q, M) + gQ" : "matmul(Q, M)");
  s.set("gA", "linalg_solve_triangular(mH(R), gA, upper=False, left=False)");
  return s(wide ? "cat([gA, gA2], -1)" : "gA");
}

/// The real part of a tensor, in the tensor's own dtype.
Arg real_part(const FormulaCall& f) {
  if (!is_complex(f.tensor(0).dtype)) return f.args[0];
  return f("(x0 + conj(x0)) * 0.5");
}

/// householder_product_backward(K, input, tau) -> (gradient of input, of tau), where Q is the product of the reflectors
/// H_i = I - tau_i v_i v_i^H and K = Q grad^H. v_i is 0 above i, 1 at i, and the input's column i below. The gradients
/// of H_0 follow from H_0^{-1} K. Each step replaces the matrix by H_{i+1}^{-1} K H_i, from which those of H_{i+1}
/// follow. H_i^{-1} is the reflector with factor sigma_i.
Arg householder_product_backward(const FormulaCall& f) {
  const TensorMeta &input = f.tensor(1), &tau = f.tensor(2);
  const SymExpr n = input.sizes.back();
  if (!tau.sizes.back().is_int()) fail_unsupported("the gradient of Householder reflectors of symbolic number");
  const std::int64_t k = tau.sizes.back().as_int();
  Steps s(f.build, {{"K", f.args[0]}, {"a", f.args[1]}, {"tau", f.args[2]}, {"k", k}});
  if (k == 0 || input.numel().is(0)) return Arg::tuple({s("zeros_like(a)"), s("zeros_like(tau)")});
  s.set("end", std::numeric_limits<std::int64_t>::max());
  s.set("V", "tril(a, -1)");
  s.set("V", "diagonal_scatter(V, ones_like(diagonal(V, 0, -2, -1)), 0, -2, -1)");
  s.set("Vk", "aten.slice.Tensor(V, -1, 0, k)");
  s.set("sigma", "tau / (tau * sum(Vk * conj(Vk), [-2]) - 1.0)");

  auto choose = [&](std::int64_t i) {
    s.set("i", i);
    s.set("i1", i + 1);
    s.set("v", "aten.slice.Tensor(aten.slice.Tensor(V, -1, i, i1), -2, i, end)");
    s.set("t", "unsqueeze(aten.slice.Tensor(tau, -1, i, i1), -1)");
    s.set("vK", "matmul(mH(v), aten.slice.Tensor(K, -2, i, end))");
  };
  auto reflect_left = [&](std::int64_t i) {
    choose(i);
    s.set("u", "unsqueeze(aten.slice.Tensor(sigma, -1, i, i1), -1) * v");
    s.set("K", "aten.slice_scatter.default(K, aten.slice.Tensor(K, -2, i, end) - u * vK, -2, i, end)");
  };
  auto reflect_right = [&](std::int64_t i) {
    choose(i);
    s.set("Ku", "matmul(aten.slice.Tensor(K, -1, i, end), t * v)");
    s.set("K", "aten.slice_scatter.default(K, aten.slice.Tensor(K, -1, i, end) - Ku * mH(v), -1, i, end)");
  };
  std::vector<Arg> columns, taus;
  reflect_left(0);
  for (std::int64_t i = 0; i < k; ++i) {
    choose(i);
    s.set("Kv", "matmul(aten.slice.Tensor(K, -1, i, end), v)");
    columns.push_back(s("unsqueeze(aten.squeeze.dim(conj(-t * vK), -2) - aten.squeeze.dim(t * Kv, -1), -1)"));
    taus.push_back(s("-aten.squeeze.dim(conj(matmul(aten.slice.Tensor(vK, -1, i, end), v)), -1)"));
    if (i + 1 == k) break;
    reflect_left(i + 1);
    reflect_right(i);
  }
  s.set("ga", f.build.call("aten.cat.default", {Arg::list(std::move(columns)), -1}));
  if (less(f, k, n)) {
    s.set("pad", f.build.size(n - k));
    s.set("ga", "constant_pad_nd(ga, [0, pad], 0.0)");
  }
  return Arg::tuple({s("tril(ga, -1)"), f.build.call("aten.cat.default", {Arg::list(std::move(taus)), -1})});
}

/// matrix_exp_backward(grad, A): the upper right block of exp [[A^H, grad], [0, A^H]].
Arg matrix_exp_backward(const FormulaCall& f) {
  SymExpr n = f.tensor(1).sizes.back();
  Steps s(f.build, {{"g", f.args[0]}, {"A", f.args[1]}, {"n", f.build.size(n)}, {"n2", f.build.size(n * 2)}});
  s.set("Ah", "mH(A)");
  s.set("block", "cat([cat([Ah, g], -1), cat([zeros_like(Ah), Ah], -1)], -2)");
  s.set("e", "linalg_matrix_exp(block)");
  return s("aten.slice.Tensor(aten.slice.Tensor(e, -2, 0, n), -1, n, n2)");
}

}  // namespace

void register_formula_factors(OpTable& t) {
  t.add_formula_functions({
      {"real_of", real_of_tensor},
      {"real_part", real_part},
      {"svd_backward", svd_backward},
      {"linalg_eig_backward", linalg_eig_backward},
      {"linalg_qr_backward", linalg_qr_backward},
      {"householder_product_backward", householder_product_backward},
      {"matrix_exp_backward", matrix_exp_backward},
  });
}

}  // namespace partita
