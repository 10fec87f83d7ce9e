// Triangular matrices: Cholesky and LDL factors, and solving triangular systems.
#include "core/ops/families/linalg.h"
#include "core/ops/kernels/accumulate_type.h"
#include "core/ops/kernels/lapack.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/tensor/convert.h"

namespace partita {

namespace {

using namespace kernels;

/// Zeroes the elements outside of one triangle.
template <class T>
void keep_triangle(T* a, std::int64_t n, bool upper) {
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      if (upper ? i > j : i < j) a[j * n + i] = T(0);
}

/// Computes Cholesky factors in place. Returns LAPACK's info for each matrix.
Tensor factorise(const Matrices& a, bool upper) {
  Tensor info = zeros(DType::Int32, {a.count});
  if (a.rows == 0) return info;
  dispatch_inexact(a.values.dtype, "cholesky", [&]<class T>() {
    for (std::int64_t i : steps(a.count, 4096)) {
      keep_triangle(a.at<T>(i), a.rows, upper);
      info.as<std::int32_t>()[i] =
          lapack::potrf<T>(upper ? 'U' : 'L', static_cast<int>(a.rows), a.at<T>(i), a.leading_dimension());
    }
  });
  return info;
}

void check_positive(const Tensor& info, const char* what) {
  for (std::int64_t i : steps(info.numel()))
    if (int order = info.as<std::int32_t>()[i]; order > 0)
      fail(std::string(what) +
           ": The factorization could not be completed because the input is not positive-definite (the leading minor "
           "of order " +
           std::to_string(order) + " is not positive-definite).");
}

Meta fake_cholesky_ex(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_square(c, self, "linalg.cholesky");
  return MetaTuple{{column_major(self, self.sizes), int32_like(self, leading(self.sizes, 2))}};
}

Value eval_cholesky_ex(EvalCall& c) {
  Matrices a(c.tensor("self"));
  Tensor info = factorise(a, c.boolean("upper"));
  if (c.boolean("check_errors")) check_positive(info, "linalg.cholesky_ex");
  return ValueList{a.values, info};
}

Meta fake_cholesky(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_square(c, self, "cholesky");
  bool none = false;
  for (SymExpr s : self.sizes) none = none || s.is(0);
  return none ? new_like(self, self.sizes) : column_major(self, self.sizes);
}

Value eval_cholesky(EvalCall& c) {
  Matrices a(c.tensor("self"));
  check_positive(factorise(a, c.boolean("upper")), "cholesky");
  return a.values;
}

Meta fake_cholesky_inverse(FakeCall& c) {
  check_square(c, c.tensor("self"), "cholesky_inverse");
  return column_major(c.tensor("self"), c.tensor("self").sizes);
}

Value eval_cholesky_inverse(EvalCall& c) {
  Matrices a(c.tensor("self"));
  bool upper = c.boolean("upper");
  std::int64_t n = a.rows;
  if (n > 0)
    dispatch_inexact(a.values.dtype, "cholesky_inverse", [&]<class T>() {
      for (std::int64_t b : steps(a.count, 4096)) {
        T* x = a.at<T>(b);
        if (lapack::potri<T>(upper ? 'U' : 'L', static_cast<int>(n), x, a.leading_dimension()) > 0)
          fail("cholesky_inverse: a diagonal element of the factor is zero");
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < n; ++i)
            if (upper ? i > j : i < j) {
              if constexpr (is_complex_type<T>::value)
                x[j * n + i] = std::conj(x[i * n + j]);
              else
                x[j * n + i] = x[i * n + j];
            }
      }
    });
  return a.values;
}

/// The meta of X in A X = B (X A = B when not `left`), with the common batch of A and B. Fails when they do not fit;
/// `what` names the operator.
TensorMeta solution(FakeCall& c, const TensorMeta& a, const TensorMeta& b, bool left, const char* what) {
  check_same_dtype(a, b, what);
  check_square(c, a, what);
  check_matrix(b, what);
  if (!checked(c, sym_eq(rows_of(a), left ? rows_of(b) : columns_of(b)), what))
    fail(std::string(what) + ": Incompatible shapes of the coefficients and the right-hand side");
  return column_major(b, with_batch(common_batch(c, a, b), {rows_of(b), columns_of(b)}));
}

Meta fake_cholesky_solve(FakeCall& c) {
  return solution(c, c.tensor("input2"), c.tensor("self"), true, "cholesky_solve");
}

Value eval_cholesky_solve(EvalCall& c) {
  Sizes batch = common_batch(c.tensor("input2"), c.tensor("self"));
  Matrices a(c.tensor("input2"), batch), x(c.tensor("self"), batch);
  if (x.values.numel() > 0)
    dispatch_inexact(x.values.dtype, "cholesky_solve", [&]<class T>() {
      for (std::int64_t i : steps(x.count, 4096))
        lapack::potrs<T>(c.boolean("upper") ? 'U' : 'L', static_cast<int>(a.rows), static_cast<int>(x.columns),
                         static_cast<const T*>(a.at<T>(i)), a.leading_dimension(), x.at<T>(i), x.leading_dimension());
    });
  return x.values;
}

/// Solves a triangular system in place. A 0 on the diagonal gives infinities, as in PyTorch.
template <class T>
void substitute(const Matrices& a, const Matrices& x, bool upper, bool transpose, bool unit) {
  using Sum = AccumulateType<T>;
  std::int64_t n = a.rows;
  for (std::int64_t b : steps(x.count, 4096)) {
    auto at = [&](std::int64_t i, std::int64_t j) { return transpose ? a.at<T>(b)[i * n + j] : a.at<T>(b)[j * n + i]; };
    bool backward = upper != transpose;
    for (std::int64_t j : steps(x.columns, n * n)) {
      T* column = x.at<T>(b) + j * n;
      for (std::int64_t step = 0; step < n; ++step) {
        std::int64_t i = backward ? n - 1 - step : step;
        Sum sum(column[i]);
        for (std::int64_t k = backward ? i + 1 : 0; k < (backward ? n : i); ++k) sum -= Sum(at(i, k)) * Sum(column[k]);
        column[i] = static_cast<T>(unit ? sum : sum / Sum(at(i, i)));
      }
    }
  }
}

Meta fake_solve_triangular(FakeCall& c) {
  return solution(c, c.tensor("self"), c.tensor("B"), c.boolean("left"), "linalg.solve_triangular");
}

Value eval_solve_triangular(EvalCall& c) {
  const Tensor& b = c.tensor("B");
  bool left = c.boolean("left");
  Sizes batch = common_batch(c.tensor("self"), b);
  Matrices a(c.tensor("self"), batch), x(left ? b : transposed(b), batch);
  dispatch_inexact(x.values.dtype, "linalg_solve_triangular",
                   [&]<class T>() { substitute<T>(a, x, c.boolean("upper"), !left, c.boolean("unitriangular")); });
  return left ? x.values : transposed(x.values);
}

Meta fake_triangular_solve(FakeCall& c) {
  const TensorMeta &a = c.tensor("A"), &b = c.tensor("self");
  TensorMeta x = solution(c, a, b, true, "triangular_solve");
  return MetaTuple{{x, column_major(a, with_batch(leading(x.sizes, 2), {rows_of(a), columns_of(a)}))}};
}

Value eval_triangular_solve(EvalCall& c) {
  Sizes batch = common_batch(c.tensor("A"), c.tensor("self"));
  Matrices a(c.tensor("A"), batch), x(c.tensor("self"), batch);
  dispatch_inexact(x.values.dtype, "triangular_solve", [&]<class T>() {
    substitute<T>(a, x, c.boolean("upper"), c.boolean("transpose"), c.boolean("unitriangular"));
  });
  return ValueList{x.values, a.values};
}

Meta fake_ldl_factor(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_square(c, self, "torch.linalg.ldl_factor_ex");
  return MetaTuple{{column_major(self, self.sizes), int32_like(self, leading(self.sizes, 1)),
                    int32_like(self, leading(self.sizes, 2))}};
}

Value eval_ldl_factor(EvalCall& c) {
  Matrices a(c.tensor("self"));
  Tensor rows = zeros(DType::Int32, {a.count, a.rows}), infos = zeros(DType::Int32, {a.count});
  if (a.rows > 0)
    dispatch_inexact(a.values.dtype, "ldl_factor", [&]<class T>() {
      for (std::int64_t i : steps(a.count, 4096)) {
        keep_triangle(a.at<T>(i), a.rows, false);
        auto* pivots = rows.as<std::int32_t>() + i * a.rows;
        int n = static_cast<int>(a.rows), info;
        if (c.boolean("hermitian"))
          info = lapack::hetrf<T>('L', n, a.at<T>(i), n, pivots);
        else
          info = lapack::sytrf<T>('L', n, a.at<T>(i), n, pivots);
        if (info > 0 && c.boolean("check_errors")) fail("torch.linalg.ldl_factor_ex: D is singular");
        infos.as<std::int32_t>()[i] = info;
      }
    });
  return ValueList{a.values, rows, infos};
}

Meta fake_ldl_solve(FakeCall& c) {
  constexpr const char* what = "torch.linalg.ldl_solve";
  const TensorMeta &ld = c.tensor("LD"), &pivots = c.tensor("pivots");
  Meta out = solution(c, ld, c.tensor("B"), true, what);
  if (!is_integral(pivots.dtype)) fail(std::string(what) + ": Expected pivots to be integers");
  if (ld.dtype != c.tensor("B").dtype) fail(std::string(what) + ": Expected LD and B to have the same dtype");
  check_pivot_sizes(c, ld, pivots, what);
  return out;
}

/// Checks pivots as sytrf returns them: the row, counted from 1, with which a row was swapped; or for a block of two
/// rows its negative, twice. LAPACK does not check them, and PyTorch passes them on unchecked.
void check_blocks(const int* pivots, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t row = pivots[i];
    const bool block = row < 0 && i + 1 < n && pivots[i + 1] < 0 && row >= -n && pivots[i + 1] >= -n;
    if (!block && (row < 1 || row > n))
      fail("torch.linalg.ldl_solve: pivots must be rows of LD, from 1, as torch.linalg.ldl_factor gives them");
    if (block) ++i;
  }
}

Value eval_ldl_solve(EvalCall& c) {
  Sizes batch = common_batch(c.tensor("LD"), c.tensor("B"));
  Matrices ld(c.tensor("LD"), batch), x(c.tensor("B"), batch);
  Tensor pivots = expand_batch(load(c.tensor("pivots"), DType::Int32), batch, 1);
  if (x.values.numel() > 0)
    dispatch_inexact(x.values.dtype, "ldl_solve", [&]<class T>() {
      int n = static_cast<int>(ld.rows), columns = static_cast<int>(x.columns);
      for (std::int64_t i : steps(x.count, 4096)) {
        const T* a = ld.at<T>(i);
        const int* p = pivots.as<std::int32_t>() + i * n;
        check_blocks(p, n);
        if (c.boolean("hermitian"))
          lapack::hetrs<T>('L', n, columns, a, n, p, x.at<T>(i), n);
        else
          lapack::sytrs<T>('L', n, columns, a, n, p, x.at<T>(i), n);
      }
    });
  return x.values;
}

/// in_triangle(gradient, upper, unitriangular): only the triangle that was read has a gradient; its diagonal does not
/// when it counts as ones.
Arg in_triangle(const FormulaCall& f) {
  return f("triu(x0, 1) if x1 and x2 else triu(x0) if x1 else tril(x0, -1) if x2 else tril(x0)");
}

}  // namespace

void register_linalg_triangular(OpTable& t) {
  t.add_formula_functions({{"in_triangle", in_triangle}});
  t.add("aten.linalg_cholesky_ex.default", fake_cholesky_ex, eval_cholesky_ex,
        {{"self", "cholesky_backward(grad, upper, result0)"}}, {.cost = {.expensive = true}});
  t.add("aten.cholesky.default", fake_cholesky, eval_cholesky, {{"self", "cholesky_backward(grad, upper, result)"}},
        {.cost = {.expensive = true}});
  t.add("aten.cholesky_inverse.default", fake_cholesky_inverse, eval_cholesky_inverse,
        {{"self",
          "W = matmul(matmul(result, grad + mH(grad)), result); -matmul(self, W) if upper else -matmul(W, self)"}},
        {.cost = {.expensive = true}});
  t.add("aten.cholesky_solve.default", fake_cholesky_solve, eval_cholesky_solve,
        {{"self, input2",
          "g = cholesky_solve(grad, input2, upper); "
          "once = matmul(g, mH(result)) if output_mask[1] else None; "
          "both = once + mH(once) if output_mask[1] else None; "
          "(g, None if both is None else -matmul(input2, both) if upper else -matmul(both, input2))"}},
        {.cost = {.expensive = true}});
  t.add("aten.linalg_solve_triangular.default", fake_solve_triangular, eval_solve_triangular,
        {{"self, B",
          "gB = linalg_solve_triangular(mH(self), grad, upper=not upper, left=left, unitriangular=unitriangular); "
          "gA = None if not output_mask[0] else -matmul(gB, mH(result)) if left else -matmul(mH(result), gB); "
          "(None if gA is None else in_triangle(gA, upper, unitriangular), gB)"}},
        {.cost = {.expensive = true}});
  t.add("aten.triangular_solve.default", fake_triangular_solve, eval_triangular_solve,
        {{"self, A",
          "gB = None if grads[0] is None else triangular_solve(grads[0], conj(A), upper, not transpose, "
          "unitriangular)[0]; "
          "gA = None if gB is None or not output_mask[1] else -matmul(conj(result0), mT(gB)) if "
          "transpose else -matmul(gB, mH(result0)); "
          "(gB, sum_of(None if gA is None else in_triangle(gA, upper, unitriangular), grads[1]))"}},
        {.autograd = {.all_results_differentiable = true}, .cost = {.expensive = true}});
  t.add("aten.linalg_ldl_factor_ex.default", fake_ldl_factor, eval_ldl_factor, {}, {.cost = {.expensive = true}});
  // linalg_ldl_solve is not differentiable by LD. For a symmetric matrix, the adjoint system has the conjugate of LD.
  t.add("aten.linalg_ldl_solve.default", fake_ldl_solve, eval_ldl_solve,
        {{"LD", "unsupported('the gradient of linalg_ldl_solve with respect to the factors')"},
         {"B", "linalg_ldl_solve(LD if hermitian else conj(LD), pivots, grad, hermitian=hermitian)"}},
        {.cost = {.expensive = true}});
}

}  // namespace partita
