// Determinants, inverses and solutions of linear systems by LU factors.
#include <cmath>

#include "core/ops/families/linalg_lu.h"
#include "core/ops/kernels/lapack.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {

namespace {

using namespace kernels;

Meta fake_det(FakeCall& c) {
  const TensorMeta& a = c.tensor("A");
  check_square(c, a, "linalg.det");
  return MetaTuple{{new_like(a, leading(a.sizes, 2)), column_major(a, a.sizes), int32_like(a, leading(a.sizes, 1))}};
}

Meta fake_slogdet(FakeCall& c) {
  const TensorMeta& a = c.tensor("A");
  check_square(c, a, "linalg.slogdet");
  TensorMeta sign = new_like(a, leading(a.sizes, 2)), logarithm = sign;
  logarithm.dtype = real_of(a.dtype);
  return MetaTuple{{sign, logarithm, column_major(a, a.sizes), int32_like(a, leading(a.sizes, 1))}};
}

/// Calls f(matrix number, diagonal of U as a function of the position, sign of the permutation) for every matrix.
template <class T, class F>
void each_diagonal(const LuFactors& f, F use) {
  std::int64_t n = f.lu.rows;
  for (std::int64_t i = 0; i < f.lu.count; ++i) {
    bool odd = false;
    for (std::int64_t k = 0; k < n; ++k) odd ^= f.pivots.as<std::int32_t>()[i * n + k] != k + 1;
    use(i, [&, i](std::int64_t k) { return f.lu.at<T>(i)[k * n + k]; }, odd ? T(-1) : T(1));
  }
}

/// Whether the factors of a determinant are of A's transpose, which PyTorch need not copy. Its backward graphs read the
/// factors so. Those of a solution are always of A.
bool factors_transpose(const Tensor& a) {
  return a.is_contiguous() && !is_complex(a.dtype);
}

LuFactors factors_of(const Tensor& a) {
  return LuFactors{Matrices(factors_transpose(a) ? transposed(a) : a)};
}

Value eval_det(EvalCall& c) {
  LuFactors f = factors_of(c.tensor("A"));
  Tensor products = zeros(f.lu.values.dtype, {f.lu.count});
  dispatch_inexact(products.dtype, "det", [&]<class T>() {
    each_diagonal<T>(f, [&](std::int64_t i, auto diagonal, T sign) {
      T product = sign;
      for (std::int64_t k = 0; k < f.lu.rows; ++k) product *= diagonal(k);
      products.as<T>()[i] = product;
    });
  });
  return ValueList{products, f.lu.values, f.pivots};
}

Value eval_slogdet(EvalCall& c) {
  LuFactors f = factors_of(c.tensor("A"));
  const DType dtype = f.lu.values.dtype;
  Tensor signs = zeros(dtype, {f.lu.count}), logarithms = zeros(real_of(dtype), {f.lu.count});
  dispatch_inexact(dtype, "slogdet", [&]<class T>() {
    using Real = decltype(std::abs(T()));
    each_diagonal<T>(f, [&](std::int64_t i, auto diagonal, T sign) {
      Real logarithm = 0;
      for (std::int64_t k = 0; k < f.lu.rows; ++k) {
        Real size = std::abs(diagonal(k));
        sign *= size == 0 ? T(0) : diagonal(k) / size;
        logarithm += std::log(size);
      }
      signs.as<T>()[i] = sign;
      logarithms.as<Real>()[i] = logarithm;
    });
  });
  return ValueList{signs, logarithms, f.lu.values, f.pivots};
}

Meta fake_inv(FakeCall& c) {
  const TensorMeta& a = c.tensor("A");
  check_square(c, a, "linalg.inv");
  return MetaTuple{{column_major(a, a.sizes), int32_like(a, leading(a.sizes, 2))}};
}

Value eval_inv(EvalCall& c) {
  const Tensor& a = c.tensor("A");
  LuFactors f{Matrices(a)};
  check_info(c, f.info, "linalg.inv");
  std::int64_t n = f.lu.rows;
  Matrices x(a.dtype, batch_of(a), n, n);
  dispatch_inexact(a.dtype, "inv", [&]<class T>() {
    for (std::int64_t i : steps(x.count, 4096))
      for (std::int64_t k = 0; k < n; ++k) x.at<T>(i)[k * n + k] = T(1);
  });
  solve_factored(f.lu, f.pivots, x, 'N');
  return ValueList{x.values, f.info};
}

Meta fake_solve(FakeCall& c) {
  const TensorMeta &a = c.tensor("A"), &b = c.tensor("B");
  check_square(c, a, "linalg.solve");
  check_same_dtype(a, b, "linalg.solve");
  bool vectors = are_vectors(c, a.sizes, b.sizes), left = c.boolean("left");
  TensorMeta matrix = b;
  if (vectors) matrix.sizes.push_back(1);
  check_matrix(matrix, "linalg.solve");
  if (!checked(c, sym_eq(rows_of(a), left ? rows_of(matrix) : columns_of(matrix)), "linalg.solve"))
    fail("linalg.solve: Incompatible shapes of A and B for the equation " + std::string(left ? "AX = B" : "XA = B"));
  SymList sizes = common_batch(c, a, matrix);
  sizes.push_back(rows_of(matrix));
  if (!vectors) sizes.push_back(columns_of(matrix));
  return MetaTuple{{left ? column_major(b, sizes) : new_like(b, sizes), column_major(a, a.sizes),
                    int32_like(a, leading(a.sizes, 1)), int32_like(a, leading(a.sizes, 2))}};
}

Value eval_solve(EvalCall& c) {
  const Tensor& a = c.tensor("A");
  Tensor b = c.tensor("B");
  bool left = c.boolean("left");
  const CallOfValues metas(c);
  if (are_vectors(metas.call, metas.call.tensor("A").sizes, metas.call.tensor("B").sizes)) {
    if (!left) fail("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.");
    b.sizes.push_back(1);
    b.strides.push_back(1);
  }
  Sizes batch = common_batch(a, b);
  LuFactors f{Matrices(a)};
  check_info(c, f.info, "torch.linalg.solve_ex");
  Sizes own = batch_of(a);
  own.push_back(f.lu.rows);
  Tensor pivots = expand_batch(f.pivots.view_as(own, row_major_strides(own), 0), batch, 1);
  Tensor x = solve_with(Matrices(f.lu.values, batch), pivots, b, batch, left, false);
  return ValueList{x, f.lu.values, f.pivots, f.info};
}

/// factors_transpose(A)
Arg formula_factors_transpose(const FormulaCall& f) {
  return is_row_major(f.tensor(0)) && !is_complex(f.tensor(0).dtype);
}

/// solves_vector(A, B)
Arg solves_vector(const FormulaCall& f) {
  return are_vectors(f.guards(), f.tensor(0).sizes, f.tensor(1).sizes);
}

}  // namespace

void register_linalg_solve(OpTable& t) {
  t.add_formula_functions({{"solves_vector", solves_vector}, {"factors_transpose", formula_factors_transpose}});
  // Determinants are not marked as expensive: a plan may give such calls other strides, which decide what is factored.
  t.add("aten._linalg_det.default", fake_det, eval_det,
        {{"A", "lu_diagonal_solve(grad * conj(result0), result1, result2, not factors_transpose(A))"}},
        {.family = Family::Matmul});
  // The derivative of log|det| is Re tr(A^-1 dA); the derivative of the sign's angle is Im tr(A^-1 dA).
  t.add("aten._linalg_slogdet.default", fake_slogdet, eval_slogdet,
        {{"A",
          "w = conj(grads[0]) * result0 if grads[0] is not None and is_complex(A) else None; "
          "d = sum_of(grads[1], None if w is None else (conj(w) - w) * 0.5); "
          "None if d is None else lu_diagonal_solve(d, result2, result3, not factors_transpose(A))"}},
        {.autograd = {.all_results_differentiable = true, .constant_results = 0b1100}, .family = Family::Matmul});
  t.add("aten.linalg_inv_ex.default", fake_inv, eval_inv, {{"A", "-matmul(mH(result0), matmul(grad, mH(result0)))"}},
        {.cost = {.expensive = true}});
  t.add("aten._linalg_solve_ex.default", fake_solve, eval_solve,
        {{"A, B",
          "v = solves_vector(A, B); "
          "g = unsqueeze(grad, -1) if v else grad; "
          "X = unsqueeze(result0, -1) if v else result0; "
          "gB = linalg_lu_solve(result1, result2, g, left=left, adjoint=True); "
          "(None if not output_mask[0] else -matmul(gB, mH(X)) if left else -matmul(mH(X), gB), "
          "aten.squeeze.dim(gB, -1) if v and output_mask[1] else gB)"}},
        {.cost = {.expensive = true}});
}

}  // namespace partita
