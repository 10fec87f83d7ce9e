// Formula functions for the gradients of factorisations with orthogonal factors.
#include <limits>

#include "core/ops/record/formula_functions.h"

namespace partita {
namespace {

bool less(const FormulaCall& f, SymExpr a, SymExpr b) {
  return f.guards().test(sym_lt(a, b), "the gradient of a factorisation");
}

/// svd_backward(gU, gS, gVh, U, S, Vh) for the reduced A = U diag(S) Vh. Gradients that do not exist are None.
Arg svd_backward(const FormulaCall& f) {
  bool has_u = f.has(0), has_s = f.has(1), has_v = f.has(2), complex = is_complex(f.tensor(3).dtype);
  SymExpr m = f.tensor(3).sizes[f.tensor(3).dim() - 2], n = f.tensor(5).sizes.back(), k = f.tensor(4).sizes.back();
  bool tall = less(f, k, m), wide = less(f, k, n);
  const std::vector<std::pair<std::string, Arg>> names = {{"gU", f.args[0]}, {"gS", f.args[1]}, {"gVh", f.args[2]},
                                                          {"U", f.args[3]},  {"S", f.args[4]},  {"Vh", f.args[5]}};
  if (!has_u && !has_v)
    return f(wide ? "matmul(U * unsqueeze(gS, -2), Vh)" : "matmul(U, unsqueeze(gS, -1) * Vh)", names);
  // E_ij = S_j^2 - S_i^2 off the diagonal and 1 on it. The skew-Hermitian parts that are divided by E are 0 on a real
  // diagonal.
  std::string steps = "S2 = S * S; E = unsqueeze(S2, -2) - unsqueeze(S2, -1) + diag_embed(ones_like(S)); gA = None;";
  if (has_u) steps += "UhgU = matmul(mH(U), gU); UhgU = UhgU - mH(UhgU); gA = (UhgU / E) * unsqueeze(S, -2);";
  if (has_v)
    steps += "VhgV = matmul(Vh, mH(gVh)); VhgV = VhgV - mH(VhgV); gA = sum_of(gA, unsqueeze(S, -1) * (VhgV / E));";
  if (has_s) steps += "gA = gA + diag_embed(gS);";
  if (complex && has_u && has_v) steps += "gA = gA + diag_embed(diagonal(UhgU, 0, -2, -1) / (S * 2));";
  if (tall && has_u)
    steps += "gA = matmul(U, gA); gUS = gU / unsqueeze(S, -2); matmul(gA + gUS - matmul(U, matmul(mH(U), gUS)), Vh)";
  else if (wide && has_v)
    steps += "gA = matmul(gA, Vh); SgV = gVh / unsqueeze(S, -1); matmul(U, gA + SgV - matmul(matmul(SgV, mH(Vh)), Vh))";
  else
    steps += wide ? "matmul(matmul(U, gA), Vh)" : "matmul(U, matmul(gA, Vh))";
  return f(steps, names);
}

/// linalg_eig_backward(gL, gV, L, V, is_hermitian) for A = V diag(L) V^-1, where columns of V have norm 1. Gradients
/// that do not exist are None.
Arg linalg_eig_backward(const FormulaCall& f) {
  const std::vector<std::pair<std::string, Arg>> names = {
      {"gL", f.args[0]}, {"gV", f.args[1]}, {"L", f.args[2]}, {"V", f.args[3]}, {"hermitian", f.flag(4)}};
  if (!f.has(1))
    return f(
        "matmul(V * unsqueeze(gL, -2), mH(V)) if hermitian else "
        "aten._linalg_solve_ex.default(mH(V), unsqueeze(gL, -1) * mH(V))[0]",
        names);
  // For a Hermitian A, V is unitary: the gradient is projected onto the skew-Hermitian matrices, in whose directions V
  // can change. E_ij = conj(L_j - L_i) off the diagonal. The diagonal of the result is the gradient of L.
  return f(
      "M = matmul(mH(V), gV);"
      "M = (M - mH(M)) * 0.5 if hermitian else "
      "M - matmul(mH(V), V * unsqueeze(real_of(diagonal(M, 0, -2, -1)), -2));"
      "E = conj(unsqueeze(L, -2) - unsqueeze(L, -1)) + diag_embed(ones_like(L));"
      "M = (M - diag_embed(diagonal(M, 0, -2, -1))) / E;"
      "M = M if gL is None else M + diag_embed(gL);"
      "matmul(V, matmul(M, mH(V))) if hermitian else aten._linalg_solve_ex.default(mH(V), matmul(M, mH(V)))[0]",
      names);
}

/// The real part of a complex tensor, in a real dtype.
Arg real_of_tensor(const FormulaCall& f) {
  if (!is_complex(f.tensor(0).dtype)) return f.args[0];
  return f("aten.select.int(aten.view_as_real.default(contiguous(x0)), -1, 0)");
}

/// linalg_qr_backward(gQ, gR, Q, R) for the reduced A = Q R. Gradients that do not exist are None.
Arg linalg_qr_backward(const FormulaCall& f) {
  const SymExpr k = f.tensor(2).sizes.back(), n = f.tensor(3).sizes.back();
  const bool wide = less(f, k, n);
  std::vector<std::pair<std::string, Arg>> names = {
      {"gQ", f.args[0]}, {"gR", f.args[1]}, {"Q", f.args[2]}, {"R", f.args[3]}, {"wide", wide}};
  std::string steps;
  if (wide) {
    names.insert(names.end(), {{"k", f.build.size(k)}, {"n", f.build.size(n)}});
    // A is wide: A = [A1 A2] = Q [R1 R2]. Since R2 = Q^H A2, the gradient of R2 contributes to those of Q and A2.
    steps = f.has(1) ? "gR2 = aten.slice.Tensor(gR, -1, k, n); gR = aten.slice.Tensor(gR, -1, 0, k);"
                       "gQ = sum_of(gQ, matmul(matmul(Q, aten.slice.Tensor(R, -1, k, n)), mH(gR2)));"
                       "R = aten.slice.Tensor(R, -1, 0, k); gA2 = matmul(Q, gR2);"
                     : "gA2 = zeros_like(aten.slice.Tensor(R, -1, k, n)); R = aten.slice.Tensor(R, -1, 0, k);";
  }
  // The second M is the Hermitian matrix with the upper triangle of the first; its diagonal is the real part of M's.
  return f(steps +
               "M = -matmul(mH(Q), gQ) if gR is None else matmul(gR, mH(R)) if gQ is None else "
               "matmul(gR, mH(R)) - matmul(mH(Q), gQ);"
               "M = triu(M, 1) + mH(triu(M, 1)) + diag_embed(real_part(diagonal(M, 0, -2, -1)));"
               "gA = sum_of(matmul(Q, M), gQ); gA = linalg_solve_triangular(mH(R), gA, upper=False, left=False);"
               "cat([gA, gA2], -1) if wide else gA",
           names);
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
  if (k == 0 || input.numel().is(0)) return f("(zeros_like(x1), zeros_like(x2))");
  std::vector<std::pair<std::string, Arg>> names = {
      {"tau", f.args[2]}, {"k", k}, {"end", std::numeric_limits<std::int64_t>::max()}};
  names.emplace_back("V", f("V = tril(x1, -1); diagonal_scatter(V, ones_like(diagonal(V, 0, -2, -1)), 0, -2, -1)"));
  names.emplace_back("sigma",
                     f("Vk = aten.slice.Tensor(V, -1, 0, k); tau / (tau * sum(Vk * conj(Vk), [-2]) - 1.0)", names));
  Arg matrix = f.args[0];
  const auto with_reflector = [&](std::int64_t i, std::string_view steps) {
    auto all = names;
    all.insert(all.end(), {{"K", matrix}, {"i", i}, {"i1", i + 1}});
    return f(
        "v = aten.slice.Tensor(aten.slice.Tensor(V, -1, i, i1), -2, i, end);"
        "t = unsqueeze(aten.slice.Tensor(tau, -1, i, i1), -1);"
        "vK = matmul(mH(v), aten.slice.Tensor(K, -2, i, end));" +
            std::string(steps),
        std::move(all));
  };
  const auto reflect_left = [&](std::int64_t i) {
    matrix = with_reflector(i,
                            "u = unsqueeze(aten.slice.Tensor(sigma, -1, i, i1), -1) * v;"
                            "aten.slice_scatter.default(K, aten.slice.Tensor(K, -2, i, end) - u * vK, -2, i, end)");
  };
  std::vector<Arg> columns, taus;
  reflect_left(0);
  for (std::int64_t i = 0; i < k; ++i) {
    const Arg gradients =
        with_reflector(i,
                       "Kv = matmul(aten.slice.Tensor(K, -1, i, end), v);"
                       "(unsqueeze(aten.squeeze.dim(conj(-t * vK), -2) - aten.squeeze.dim(t * Kv, -1), -1), "
                       "-aten.squeeze.dim(conj(matmul(aten.slice.Tensor(vK, -1, i, end), v)), -1))");
    columns.push_back(gradients.get<ArgList>()->items[0]);
    taus.push_back(gradients.get<ArgList>()->items[1]);
    if (i + 1 == k) break;
    reflect_left(i + 1);
    matrix = with_reflector(i,
                            "Ku = matmul(aten.slice.Tensor(K, -1, i, end), t * v);"
                            "aten.slice_scatter.default(K, aten.slice.Tensor(K, -1, i, end) - Ku * mH(v), -1, i, end)");
  }
  names.insert(names.end(), {{"columns", Arg::list(std::move(columns))}, {"taus", Arg::list(std::move(taus))}});
  names.emplace_back("pad", less(f, k, n) ? f.build.size(n - k) : Arg());
  return f(
      "ga = cat(columns, -1); ga = ga if pad is None else constant_pad_nd(ga, [0, pad], 0.0);"
      "(tril(ga, -1), cat(taus, -1))",
      names);
}

/// matrix_exp_backward(grad, A): the upper right block of exp [[A^H, grad], [0, A^H]].
Arg matrix_exp_backward(const FormulaCall& f) {
  const SymExpr n = f.tensor(1).sizes.back();
  return f(
      "Ah = mH(x1); e = linalg_matrix_exp(cat([cat([Ah, x0], -1), cat([zeros_like(Ah), Ah], -1)], -2));"
      "aten.slice.Tensor(aten.slice.Tensor(e, -2, 0, n), -1, n, n2)",
      {{"n", f.build.size(n)}, {"n2", f.build.size(n * 2)}});
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
