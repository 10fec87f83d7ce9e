// Singular values and eigenvalues, with their vectors.
#include <algorithm>

#include "core/ops/families/linalg.h"
#include "core/ops/kernels/lapack.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

void check_inexact(const TensorMeta& t, const char* what) {
  if (!is_floating(t.dtype) && !is_complex(t.dtype))
    fail(std::string(what) + ": Expected a floating point or complex tensor as input. Got " +
         std::string(torch_name(t.dtype)));
}

/// The meta of a result that the call does not ask for.
TensorMeta nothing(const TensorMeta& like) {
  return new_like(like, {0});
}

Meta fake_svd(FakeCall& c) {
  const TensorMeta& a = c.tensor("A");
  check_matrix(a, "linalg.svd");
  check_inexact(a, "linalg.svd");
  SymList batch = leading(a.sizes, 2);
  SymExpr m = rows_of(a), n = columns_of(a), k = smaller(m, n);
  TensorMeta s = new_like(a, with_batch(batch, {k}));
  s.dtype = real_of(a.dtype);
  if (!c.boolean("compute_uv")) return MetaTuple{{nothing(a), s, nothing(a)}};
  bool full = c.boolean("full_matrices");
  return MetaTuple{{column_major(a, with_batch(batch, {m, full ? m : k})), s,
                    column_major(a, with_batch(batch, {full ? n : k, n}))}};
}

[[noreturn]] void not_converged(const char* what, const char* why) {
  fail(std::string(what) + ": The algorithm failed to converge because the input matrix " + why);
}

/// Sets the diagonals to 1, which gives the singular vectors of matrices without elements.
void set_identity(const Matrices& m) {
  dispatch_inexact(m.values.dtype, "identity", [&]<class T>() {
    for (std::int64_t b : steps(m.count, 4096))
      for (std::int64_t i = 0; i < std::min(m.rows, m.columns); ++i) m.at<T>(b)[i * m.rows + i] = T(1);
  });
}

Value eval_svd(EvalCall& c) {
  bool vectors = c.boolean("compute_uv"), full = c.boolean("full_matrices");
  // Computed in double: different LAPACKs round differently, and the gradient divides by differences of singular
  // values.
  Matrices a(load(c.tensor("A"), is_complex(c.tensor("A").dtype) ? DType::Complex128 : DType::Float64));
  Sizes batch = batch_of(c.tensor("A"));
  std::int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  Matrices u(a.values.dtype, batch, m, vectors ? (full ? m : k) : 0);
  Matrices vh(a.values.dtype, batch, vectors ? (full ? n : k) : 0, n);
  Tensor values = zeros(DType::Float64, {a.count, k});
  if (k > 0)
    dispatch_inexact(a.values.dtype, "linalg.svd", [&]<class T>() {
      for (std::int64_t b : steps(a.count, 4096))
        if (!lapack::singular_values<T>(vectors ? (full ? 'A' : 'S') : 'N', static_cast<int>(m), static_cast<int>(n),
                                        a.at<T>(b), values.as<decltype(std::abs(T()))>() + b * k, u.at<T>(b),
                                        vh.at<T>(b)))
          not_converged("linalg.svd", "contained non-finite values.");
    });
  if (vectors && k == 0) {
    set_identity(u);
    set_identity(vh);
  }
  return ValueList{u.values, values, vh.values};
}

Meta fake_eigh(FakeCall& c) {
  const TensorMeta& a = c.tensor("A");
  check_square(c, a, "linalg.eigh");
  check_inexact(a, "linalg.eigh");
  TensorMeta values = new_like(a, leading(a.sizes, 1));
  values.dtype = real_of(a.dtype);
  return MetaTuple{{values, c.boolean("compute_v") ? column_major(a, a.sizes) : nothing(a)}};
}

Value eval_eigh(EvalCall& c) {
  std::string triangle = c.string("UPLO");
  char uplo = triangle.empty() ? ' ' : static_cast<char>(triangle[0] & ~0x20);
  if (triangle.size() != 1 || (uplo != 'L' && uplo != 'U'))
    fail("Expected UPLO argument to be 'L' or 'U', but got " + triangle);
  bool vectors = c.boolean("compute_v");
  Matrices a(c.tensor("A"));
  Tensor values = zeros(real_of(a.values.dtype), {a.count, a.rows});
  int n = static_cast<int>(a.rows);
  if (n > 0)
    dispatch_inexact(a.values.dtype, "linalg.eigh", [&]<class T>() {
      using Real = decltype(std::abs(T()));
      for (std::int64_t b : steps(a.count, 4096))
        if (lapack::heevd<T>(vectors ? 'V' : 'N', uplo, n, a.at<T>(b), n, values.as<Real>() + b * n) > 0)
          not_converged("linalg.eigh", "is ill-conditioned or has too many repeated eigenvalues.");
    });
  return ValueList{values, vectors ? a.values : empty(a.values.dtype, {0})};
}

Meta fake_eig(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_square(c, self, "linalg.eig");
  check_inexact(self, "linalg.eig");
  TensorMeta values = new_like(self, leading(self.sizes, 1)), vectors = column_major(self, self.sizes);
  values.dtype = vectors.dtype = complex_of(self.dtype);
  return MetaTuple{{values, vectors}};
}

Value eval_eig(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  Matrices a(self), v(complex_of(self.dtype), batch_of(self), a.rows, a.rows);
  Tensor values = zeros(v.values.dtype, {a.count, a.rows});
  int n = static_cast<int>(a.rows);
  if (n > 0)
    dispatch_inexact(self.dtype, "linalg.eig", [&]<class T>() {
      using Complex = std::complex<decltype(std::abs(T()))>;
      for (std::int64_t b : steps(a.count, 4096)) {
        const T* first = a.at<T>(b);
        if (!std::all_of(first, first + static_cast<std::int64_t>(n) * n,
                         [](T x) { return std::isfinite(std::abs(x)); }))
          fail("torch.linalg.eig: input tensor should not contain infs or NaNs.");
        if (lapack::geev<T>(n, a.at<T>(b), n, values.as<Complex>() + b * n, v.at<Complex>(b)) > 0)
          not_converged("linalg.eig", "is ill-conditioned or has too many repeated eigenvalues.");
      }
    });
  return ValueList{values, v.values};
}

/// first(x, dim, k): the first k columns (dim -1) or rows (dim -2) of x; None stays None.
Arg first(const FormulaCall& f) {
  return f("None if x0 is None else aten.slice.Tensor(x0, x1, 0, x2)");
}

}  // namespace

void register_linalg_eigen(OpTable& t) {
  t.add_formula_functions({{"first", first}});
  t.add("aten._linalg_svd.default", fake_svd, eval_svd,
        {{"A",
          "k = size(result1, -1); refuse('linalg.svd: the gradient needs the singular vectors, which "
          "compute_uv=False leaves out') if not compute_uv else svd_backward(grads[0], grads[1], grads[2], "
          "result0, result1, result2) if not full_matrices else svd_backward(first(grads[0], -1, k), grads[1], "
          "first(grads[2], -2, k), first(result0, -1, k), result1, first(result2, -2, k))"}},
        {.autograd = {.all_results_differentiable = true},
         .cost = {.expensive = true},
         .spectral = {.left = 0, .values = 1, .right = 2, .right_is_adjoint = true}});
  t.add("aten._linalg_eigh.default", fake_eigh, eval_eigh,
        {{"A",
          "linalg_eig_backward(grads[0], grads[1], result0, result1, True) if compute_v else "
          "refuse('linalg.eigh: the gradient needs the eigenvectors, which compute_v=False leaves out')"}},
        {.autograd = {.all_results_differentiable = true},
         .cost = {.expensive = true},
         .spectral = {.left = 1, .values = 0}});
  t.add("aten.linalg_eig.default", fake_eig, eval_eig,
        {{"self", "linalg_eig_backward(grads[0], grads[1], result0, result1, False)"}},
        {.autograd = {.all_results_differentiable = true},
         .cost = {.expensive = true},
         .spectral = {.left = 1, .values = 0, .orthogonal = false}});
  t.add("aten.linalg_svd.default", {.program = "aten._linalg_svd.default(A, full_matrices, True, driver=driver)",
                                    .spectral = {.left = 0, .values = 1, .right = 2, .right_is_adjoint = true}});
  t.add("aten.linalg_svdvals.default", {.program = "aten._linalg_svd.default(A, False, True, driver=driver)[1]"});
  t.add("aten.svd.default",
        {.program = "all = aten._linalg_svd.default(self, not some) if compute_uv else unsupported('svd with "
                    "compute_uv=False'); V = mH(all[2]); (all[0], all[1], V)",
         .spectral = {.left = 0, .values = 1, .right = 2}});
  t.add("aten.linalg_eigh.default",
        {.program = "aten._linalg_eigh.default(self, UPLO)", .spectral = {.left = 1, .values = 0}});
  t.add("aten.linalg_eigvalsh.default", {.program = "aten._linalg_eigh.default(self, UPLO)[0]"});
  t.add("aten.linalg_eigvals.default", {.program = "aten.linalg_eig.default(self)[0]"});
}

}  // namespace partita
