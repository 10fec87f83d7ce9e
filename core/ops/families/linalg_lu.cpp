// LU factorisation: the factors, unpacking them, and solving with them.
#include "core/ops/families/linalg_lu.h"

#include "core/ops/kernels/lapack.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/tensor/convert.h"

namespace partita {

using namespace kernels;

LuFactors::LuFactors(Matrices m) : lu(std::move(m)) {
  std::int64_t pivot_count = std::min(lu.rows, lu.columns);
  pivots = zeros(DType::Int32, {lu.count, pivot_count});
  info = zeros(DType::Int32, {lu.count});
  if (lu.rows == 0 || lu.columns == 0) return;
  dispatch_inexact(lu.values.dtype, "lu_factor", [&]<class T>() {
    for (std::int64_t i : steps(lu.count, 4096))
      info.as<std::int32_t>()[i] =
          lapack::getrf<T>(static_cast<int>(lu.rows), static_cast<int>(lu.columns), lu.at<T>(i), lu.leading_dimension(),
                           pivots.as<std::int32_t>() + i * pivot_count);
  });
}
void check_info(const EvalCall& c, const Tensor& info, const char* what) {
  if (!c.boolean("check_errors")) return;
  for (std::int64_t i : steps(info.numel()))
    if (int at = info.as<std::int32_t>()[i]; at > 0)
      fail(std::string(what) + ": The factor's diagonal element " + std::to_string(at) +
           " is zero: the input matrix is singular.");
}

void solve_factored(const Matrices& lu, const Tensor& pivots, const Matrices& x, char op) {
  if (x.rows == 0 || x.columns == 0) return;
  dispatch_inexact(lu.values.dtype, "lu_solve", [&]<class T>() {
    for (std::int64_t i : steps(x.count, 4096))
      lapack::getrs<T>(op, static_cast<int>(lu.rows), static_cast<int>(x.columns), static_cast<const T*>(lu.at<T>(i)),
                       lu.leading_dimension(), static_cast<const int*>(pivots.as<std::int32_t>() + i * lu.rows),
                       x.at<T>(i), x.leading_dimension());
  });
}

namespace {

template <class T>
void conjugate_all(const Matrices& m) {
  if constexpr (is_complex_type<T>::value)
    for (std::int64_t i : steps(m.values.numel())) m.values.as<T>()[i] = std::conj(m.values.as<T>()[i]);
}

}  // namespace

Tensor solve_with(const Matrices& lu, const Tensor& pivots, const Tensor& b, const Sizes& batch, bool left,
                  bool adjoint) {
  Matrices x(left ? b : transposed(b), batch);
  bool complex = is_complex(b.dtype);
  // X A^H = B means conj(A) X^T = B^T, so A Y = conj(B^T) is solved and the result conjugated.
  bool conjugate = !left && adjoint && complex;
  auto flip = [&] { dispatch_inexact(b.dtype, "lu_solve", [&]<class T>() { conjugate_all<T>(x); }); };
  if (conjugate) flip();
  solve_factored(lu, pivots, x, left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T'));
  if (conjugate) flip();
  return left ? x.values : transposed(x.values);
}

namespace {

Meta fake_lu_factor(FakeCall& c) {
  const TensorMeta& a = c.tensor("A");
  check_matrix(a, "torch.lu_factor");
  SymList batch = leading(a.sizes, 2);
  return MetaTuple{{column_major(a, a.sizes), int32_like(a, with_batch(batch, {smaller(rows_of(a), columns_of(a))})),
                    int32_like(a, batch)}};
}

void check_pivot(const EvalCall& c) {
  if (!c.boolean("pivot")) fail("linalg.lu_factor: LU without pivoting is not implemented on the CPU");
}

Value eval_lu_factor(EvalCall& c) {
  check_pivot(c);
  LuFactors f{Matrices(c.tensor("A"))};
  check_info(c, f.info, "torch.linalg.lu_factor_ex");
  return ValueList{f.lu.values, f.pivots, f.info};
}

Meta fake_lu_solve(FakeCall& c) {
  const TensorMeta &lu = c.tensor("LU"), &b = c.tensor("B");
  check_square(c, lu, "torch.linalg.lu_solve");
  check_matrix(b, "torch.linalg.lu_solve");
  bool left = c.boolean("left");
  if (!checked(c, sym_eq(rows_of(lu), left ? rows_of(b) : columns_of(b)), "linalg.lu_solve"))
    fail("linalg.lu_solve: Incompatible shapes of LU and B");
  if (lu.dtype != b.dtype) fail("linalg.lu_solve: Expected LU and B to have the same dtype");
  const TensorMeta& pivots = c.tensor("pivots");
  if (pivots.dtype != DType::Int32) fail("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
  check_pivot_sizes(c, lu, pivots, "linalg.lu_solve");
  SymList sizes = with_batch(common_batch(c, lu, b), {rows_of(b), columns_of(b)});
  return left ? column_major(b, sizes) : new_like(b, sizes);
}

/// LAPACK swaps rows by the pivots without checking them, so they are checked here.
void check_rows(const Tensor& pivots, std::int64_t rows) {
  for (std::int64_t i : steps(pivots.numel())) {
    const int at = pivots.as<std::int32_t>()[i];
    if (at < 1)
      fail(
          "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?");
    if (at > rows)
      fail(
          "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of "
          "lu_factor?");
  }
}

Value eval_lu_solve(EvalCall& c) {
  const Tensor &lu = c.tensor("LU"), &b = c.tensor("B");
  Sizes batch = common_batch(lu, b);
  Tensor pivots = expand_batch(load(c.tensor("pivots"), DType::Int32), batch, 1);
  check_rows(pivots, lu.sizes.back());
  return solve_with(Matrices(lu, batch), pivots, b, batch, c.boolean("left"), c.boolean("adjoint"));
}

/// Metas of P, L and U for matrices of lu's sizes. A factor that is not asked for has size [0].
Meta triangles(const TensorMeta& lu, bool data, bool pivots) {
  SymExpr m = rows_of(lu), n = columns_of(lu), k = smaller(m, n);
  SymList batch = leading(lu.sizes, 2);
  auto dense = [&](bool wanted, SymExpr rows, SymExpr columns) {
    return new_like(lu, wanted ? with_batch(batch, {rows, columns}) : SymList{0});
  };
  return MetaTuple{{dense(pivots, m, m), dense(data, m, k), dense(data, k, n)}};
}

Meta fake_lu(FakeCall& c) {
  check_matrix(c.tensor("A"), "linalg.lu");
  return triangles(c.tensor("A"), true, c.boolean("pivot"));
}

Meta fake_unpack(FakeCall& c) {
  const TensorMeta &lu = c.tensor("LU_data"), &pivots = c.tensor("LU_pivots");
  check_matrix(lu, "torch.lu_unpack");
  if (c.boolean("unpack_pivots")) {
    if (pivots.dtype != DType::Int32)
      fail(
          "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype; pass what "
          "torch.linalg.lu_factor gave");
    TensorMeta steps = lu;  // there is a pivot for each column that was eliminated
    steps.sizes[lu.dim() - 2] = smaller(rows_of(lu), columns_of(lu));
    check_pivot_sizes(c, steps, pivots, "torch.lu_unpack");
  }
  return triangles(c.tensor("LU_data"), c.boolean("unpack_data"), c.boolean("unpack_pivots"));
}

/// Fills P, L and U; those of size [0] are skipped.
void unpack(const Matrices& lu, const std::int32_t* pivots, const std::vector<Tensor>& out, bool data,
            bool permutation) {
  std::int64_t m = lu.rows, n = lu.columns, k = std::min(m, n);
  dispatch_inexact(lu.values.dtype, "lu_unpack", [&]<class T>() {
    std::vector<std::int64_t> row(static_cast<std::size_t>(m));
    for (std::int64_t b : steps(lu.count, 4096)) {
      auto at = [&](std::int64_t i, std::int64_t j) { return lu.at<T>(b)[j * m + i]; };
      for (std::int64_t i = 0; data && i < m; ++i)
        for (std::int64_t j = 0; j < k; ++j)
          out[1].as<T>()[(b * m + i) * k + j] = i > j ? at(i, j) : i == j ? T(1) : T(0);
      for (std::int64_t i = 0; data && i < k; ++i)
        for (std::int64_t j = 0; j < n; ++j) out[2].as<T>()[(b * k + i) * n + j] = i <= j ? at(i, j) : T(0);
      if (!permutation) continue;
      for (std::int64_t i = 0; i < m; ++i) row[static_cast<std::size_t>(i)] = i;
      for (std::int64_t i = 0; i < k; ++i) {
        std::int64_t with = pivots[b * k + i] - 1;
        if (with < 0 || with >= m)
          fail(
              "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive. Did you properly pass the "
              "result of lu_factor?");
        std::swap(row[static_cast<std::size_t>(i)], row[static_cast<std::size_t>(with)]);
      }
      T* p = out[0].as<T>() + b * m * m;
      std::fill(p, p + m * m, T(0));
      for (std::int64_t i = 0; i < m; ++i) p[row[static_cast<std::size_t>(i)] * m + i] = T(1);
    }
  });
}

Value eval_lu(EvalCall& c) {
  check_pivot(c);
  std::vector<Tensor> out = allocate_all(c, fake_lu);
  LuFactors f{Matrices(c.tensor("A"))};
  unpack(f.lu, f.pivots.as<std::int32_t>(), out, true, true);
  return ValueList{out[0], out[1], out[2]};
}

Value eval_unpack(EvalCall& c) {
  std::vector<Tensor> out = allocate_all(c, fake_unpack);
  Tensor pivots = load(c.tensor("LU_pivots"), DType::Int32);
  unpack(Matrices(c.tensor("LU_data")), pivots.as<std::int32_t>(), out, c.boolean("unpack_data"),
         c.boolean("unpack_pivots"));
  return ValueList{out[0], out[1], out[2]};
}

/// linalg_lu_solve_LU(gradient of B, LU, pivots, X, left, adjoint): by way of the factors P, L and U.
Arg linalg_lu_solve_LU(const FormulaCall& f) {
  return f(
      "gA = sum_to(-matmul(x3, mH(x0)) if x4 and x5 else -matmul(x0, mH(x3)) if x4 else -matmul(mH(x0), x3) if x5 else "
      "-matmul(mH(x3), x0), x1); "
      "F = lu_unpack(x1, x2); "
      "PgA = matmul(mT(F[0]), gA); "
      "tril(matmul(PgA, mH(F[2])), -1) + triu(matmul(mH(F[1]), PgA))");
}

}  // namespace

void register_linalg_lu(OpTable& t) {
  t.add_formula_functions({{"linalg_lu_solve_LU", linalg_lu_solve_LU}});
  t.add("aten.linalg_lu_factor_ex.default", fake_lu_factor, eval_lu_factor,
        {{"A", "lu_factor_backward(grad, result0, result1)"}}, {.cost = {.expensive = true}});
  t.add("aten.linalg_lu_solve.default", fake_lu_solve, eval_lu_solve,
        {{"B, LU",
          "gB = linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint); "
          "(gB, linalg_lu_solve_LU(gB, LU, pivots, result, left, adjoint) if output_mask[1] else None)"}},
        {.cost = {.expensive = true}});
  t.add("aten.linalg_lu.default", fake_lu, eval_lu,
        {{"A", "lu_backward(grads[1], grads[2], result0, result1, result2)"}},
        {.autograd = {.all_results_differentiable = true, .constant_results = 0b001}, .cost = {.expensive = true}});
  t.add("aten.lu_unpack.default", fake_unpack, eval_unpack,
        {{"LU_data", "lu_data_backward(grads[1], grads[2], LU_data)"}},
        {.autograd = {.all_results_differentiable = true, .constant_results = 0b001}});
}

}  // namespace partita
