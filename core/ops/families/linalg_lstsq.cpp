// linalg.lstsq: least squares.
#include <algorithm>
#include <limits>

#include "core/ops/families/linalg.h"
#include "core/ops/kernels/lapack.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"
#include "core/tensor/convert.h"

namespace partita {

namespace {

using namespace kernels;

enum class Driver { Gels, Gelsy, Gelsd, Gelss };

Driver driver_of(const auto& c) {
  if (!c.has("driver")) return Driver::Gelsy;
  std::string name = c.string("driver");
  if (name == "gels") return Driver::Gels;
  if (name == "gelsy") return Driver::Gelsy;
  if (name == "gelsd") return Driver::Gelsd;
  if (name == "gelss") return Driver::Gelss;
  fail("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got " + name);
}
bool gives_singular_values(Driver d) {
  return d == Driver::Gelsd || d == Driver::Gelss;
}

/// The metas of the four results. Whether there are residuals depends on A's rank, which is known only at run time.
/// Here A counts as having full rank, which lstsq's documentation requires.
Meta fake_lstsq(FakeCall& c) {
  const TensorMeta& a = c.tensor("self");
  TensorMeta b = c.tensor("b");
  check_matrix(a, "torch.linalg.lstsq");
  check_same_dtype(a, b, "torch.linalg.lstsq");
  Driver driver = driver_of(c);
  bool vectors = are_vectors(c, a.sizes, b.sizes);
  if (vectors) b.sizes.push_back(1);
  if (b.dim() < 2) fail("torch.linalg.lstsq: other must have at least 1 dimension.");
  if (!checked(c, sym_eq(rows_of(a), rows_of(b)), "torch.linalg.lstsq"))
    fail("torch.linalg.lstsq: input.size(-2) should match other.size(" + std::string(vectors ? "-1" : "-2") + ")");
  SymExpr m = rows_of(a), n = columns_of(a), tall = sym_max(m, n);
  SymList batch = common_batch(c, a, b);
  // LAPACK returns the solution in the first n of max(m, n) rows, so the strides are those of the taller matrix.
  TensorMeta solution = column_major(a, with_batch(batch, {tall, columns_of(b)}));
  solution.sizes[solution.dim() - 2] = n;
  if (vectors) {
    solution.sizes.pop_back();
    solution.strides.pop_back();
  }
  TensorMeta residuals = new_like(a, {0}), rank = new_like(a, {0}), values = new_like(a, {0});
  if (driver != Driver::Gelsy && c.test(sym_lt(n, m), "residuals of torch.linalg.lstsq"))
    residuals = new_like(a, vectors ? batch : with_batch(batch, {columns_of(b)}));
  if (driver != Driver::Gels) rank = new_like(a, leading(a.sizes, 2));
  if (gives_singular_values(driver)) values = new_like(a, with_batch(leading(a.sizes, 2), {smaller(m, n)}));
  residuals.dtype = values.dtype = real_of(a.dtype);
  rank.dtype = DType::Int64;
  return MetaTuple{{solution, residuals, rank, values}};
}

/// Solves one system in place: x [max(m, n), columns] holds B. Returns A's rank; gels does not compute one and gives
/// min(m, n).
template <class T>
int solve(Driver driver, const Matrices& a, std::int64_t i, const Matrices& x, double rcond,
          decltype(std::abs(T()))* values) {
  using Real = decltype(std::abs(T()));
  int m = static_cast<int>(a.rows), n = static_cast<int>(a.columns), nrhs = static_cast<int>(x.columns);
  int lda = a.leading_dimension(), ldx = x.leading_dimension(), rank = std::min(m, n), info = 0;
  T *matrix = a.at<T>(i), *solution = x.at<T>(i);
  auto tolerance = static_cast<Real>(rcond);
  std::vector<int> pivots(static_cast<std::size_t>(n), 0);
  switch (driver) {
    case Driver::Gels:
      info = lapack::gels<T>('N', m, n, nrhs, matrix, lda, solution, ldx);
      break;
    case Driver::Gelsy:
      info = lapack::gelsy<T>(m, n, nrhs, matrix, lda, solution, ldx, pivots.data(), tolerance, &rank);
      break;
    case Driver::Gelsd:
      info = lapack::gelsd<T>(m, n, nrhs, matrix, lda, solution, ldx, values, tolerance, &rank);
      break;
    case Driver::Gelss:
      info = lapack::gelss<T>(m, n, nrhs, matrix, lda, solution, ldx, values, tolerance, &rank);
      break;
  }
  if (info > 0)
    fail(driver == Driver::Gels
             ? "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does "
               "not have full rank (error code: " +
                   std::to_string(info) + ")."
             : "torch.linalg.lstsq: SVD algorithm failed to converge.");
  return rank;
}

/// Which matrix of `input` stands at place `i` of the batch that it is broadcast to.
std::int64_t own_matrix(const Tensor& input, const Sizes& batch, std::int64_t i) {
  std::int64_t own = 0, matrices = 1;
  for (std::size_t d = batch.size(), a = input.sizes.size() - 2; d-- > 0 && a-- > 0; i /= batch[d]) {
    if (input.sizes[a] != 1) own += i % batch[d] * matrices;
    matrices *= input.sizes[a];
  }
  return own;
}

Value eval_lstsq(EvalCall& c) {
  std::vector<Tensor> out = allocate_all(c, fake_lstsq);
  const Tensor& input = c.tensor("self");
  Tensor b = c.tensor("b");
  Driver driver = driver_of(c);
  CallOfValues metas(c);
  bool vectors = are_vectors(metas.call, metas.call.tensor("self").sizes, metas.call.tensor("b").sizes);
  if (vectors) {
    b.sizes.push_back(1);
    b.strides.push_back(1);
  }
  Sizes batch = common_batch(input, b);
  Matrices a(input, batch), right(b, batch);
  std::int64_t m = a.rows, n = a.columns, least = std::min(m, n);
  Matrices x(input.dtype, batch, std::max(m, n), right.columns);
  double eps = real_of(input.dtype) == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                                      : std::numeric_limits<float>::epsilon();
  double rcond = c.has("rcond") ? as_double(c.number("rcond")) : eps * static_cast<double>(std::max(m, n));
  bool full_rank = true;
  dispatch_inexact(input.dtype, "torch.linalg.lstsq", [&]<class T>() {
    using Real = decltype(std::abs(T()));
    std::vector<Real> values(static_cast<std::size_t>(least));
    for (std::int64_t i : steps(a.count, 4096)) {
      for (std::int64_t j = 0; j < x.columns; ++j) std::copy_n(right.at<T>(i) + j * m, m, x.at<T>(i) + j * x.rows);
      int rank = least > 0 ? solve<T>(driver, a, i, x, rcond, values.data()) : 0;
      full_rank = full_rank && rank == n;
      // A's batch may be broadcast to B's: rank and singular values belong to the matrix before that.
      const std::int64_t own = own_matrix(input, batch, i);
      if (driver != Driver::Gels && out[2].numel() > 0) out[2].as<std::int64_t>()[own] = rank;
      if (out[3].numel() > 0) std::copy(values.begin(), values.end(), out[3].as<Real>() + own * least);
    }
    if (out[1].numel() == 0) return;
    if (gives_singular_values(driver) && !full_rank) {
      out[1] = empty(out[1].dtype, {0});
      return;
    }
    for (std::int64_t i : steps(a.count, 4096))
      for (std::int64_t j = 0; j < x.columns; ++j) {
        Real sum = 0;
        for (std::int64_t r = n; r < m; ++r) sum += std::norm(x.at<T>(i)[j * x.rows + r]);
        out[1].as<Real>()[i * x.columns + j] = sum;
      }
  });
  Tensor solution = x.values;
  solution.sizes[solution.sizes.size() - 2] = n;
  if (vectors) {
    solution.sizes.pop_back();
    solution.strides.pop_back();
  }
  out[0] = solution;
  return ValueList{out[0], out[1], out[2], out[3]};
}

Arg is_empty(const FormulaCall& f) {
  return !f.has(0) || f.tensor(0).numel().is(0);
}

}  // namespace

void register_linalg_lstsq(OpTable& t) {
  t.add_formula_functions({{"is_empty", is_empty}});
  // The solution X depends on A and B as pinv(A) B does. The residuals |A X - B|^2 have no gradient through X, because
  // X minimises them.
  t.add("aten.linalg_lstsq.default", fake_lstsq, eval_lstsq,
        {{"self, b",
          "v = solves_vector(self, b); B = unsqueeze(b, -1) if v else b; X = unsqueeze(result0, -1) if v else result0; "
          "gX = None if grads[0] is None else unsqueeze(grads[0], -1) if v else grads[0]; "
          "P = None if gX is None else aten.linalg_pinv.atol_rtol_tensor(self); "
          "A1 = None if gX is None or not output_mask[0] else pinv_backward(matmul(gX, mH(B)), P, self); "
          "B1 = None if gX is None or not output_mask[1] else matmul(mH(P), gX); "
          "gL = None if grads[1] is None or is_empty(result1) else unsqueeze(grads[1], -1) if v else grads[1]; "
          "r = None if gL is None else (matmul(self, X) - B) * unsqueeze(gL, -2) * 2; "
          "A2 = None if r is None or not output_mask[0] else matmul(r, mH(X)); "
          "B2 = None if r is None or not output_mask[1] else -r; "
          "gA = sum_of(A1, A2); gB = sum_of(B1, B2); "
          "(zeros_like(self) if gA is None and output_mask[0] else gA, "
          "gB if not output_mask[1] else zeros_like(b) if gB is None else aten.squeeze.dim(gB, -1) if v else gB)"}},
        {.autograd = {.all_results_differentiable = true, .constant_results = 0b1100}, .cost = {.expensive = true}});
}

}  // namespace partita
