// Singular values and eigenvalues, with their vectors.
#include <algorithm>

#include "core/ops/families/linalg.h"
#include "core/ops/gradients.h"
#include "core/ops/kernels/lapack.h"
#include "core/ops/layout.h"

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
    for (std::int64_t b = 0; b < m.count; ++b)
      for (std::int64_t i = 0; i < std::min(m.rows, m.columns); ++i) m.at<T>(b)[i * m.rows + i] = T(1);
  });
}

Value eval_svd(EvalCall& c) {
  std::vector<Tensor> out = allocate_all(c, fake_svd);
  bool vectors = c.boolean("compute_uv"), full = c.boolean("full_matrices");
  // Computed in double: different LAPACKs round differently, and the gradient divides by differences of singular
  // values.
  Matrices a(load(c.tensor("A"), is_complex(c.tensor("A").dtype) ? DType::Complex128 : DType::Float64));
  Sizes batch = batch_of(c.tensor("A"));
  std::int64_t m = a.rows, n = a.columns, k = std::min(m, n);
  Matrices u(a.values.dtype, batch, m, vectors ? (full ? m : k) : 0);
  Matrices vh(a.values.dtype, batch, vectors ? (full ? n : k) : 0, n);
  Tensor values = zeros(DType::Float64, out[1].sizes);
  if (k > 0)
    dispatch_inexact(a.values.dtype, "linalg.svd", [&]<class T>() {
      for (std::int64_t b = 0; b < a.count; ++b)
        if (!lapack::singular_values<T>(vectors ? (full ? 'A' : 'S') : 'N', static_cast<int>(m), static_cast<int>(n),
                                        a.at<T>(b), values.as<decltype(std::abs(T()))>() + b * k, u.at<T>(b),
                                        vh.at<T>(b)))
          not_converged("linalg.svd", "contained non-finite values.");
    });
  out[1].copy_from(values);
  if (!vectors) return ValueList{out[0], out[1], out[2]};
  if (k == 0) {
    set_identity(u);
    set_identity(vh);
  }
  store(out[0], u);
  store(out[2], vh);
  return ValueList{out[0], out[1], out[2]};
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
  std::vector<Tensor> out = allocate_all(c, fake_eigh);
  std::string triangle = c.string("UPLO");
  char uplo = triangle.empty() ? ' ' : static_cast<char>(triangle[0] & ~0x20);
  if (triangle.size() != 1 || (uplo != 'L' && uplo != 'U'))
    fail("Expected UPLO argument to be 'L' or 'U', but got " + triangle);
  bool vectors = c.boolean("compute_v");
  Matrices a(c.tensor("A"));
  int n = static_cast<int>(a.rows);
  if (n > 0)
    dispatch_inexact(a.values.dtype, "linalg.eigh", [&]<class T>() {
      using Real = decltype(std::abs(T()));
      for (std::int64_t b = 0; b < a.count; ++b)
        if (lapack::heevd<T>(vectors ? 'V' : 'N', uplo, n, a.at<T>(b), n, out[0].as<Real>() + b * n) > 0)
          not_converged("linalg.eigh", "is ill-conditioned or has too many repeated eigenvalues.");
    });
  if (vectors) store(out[1], a);
  return ValueList{out[0], out[1]};
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
  std::vector<Tensor> out = allocate_all(c, fake_eig);
  const Tensor& self = c.tensor("self");
  Matrices a(self), v(out[1].dtype, batch_of(self), a.rows, a.rows);
  int n = static_cast<int>(a.rows);
  if (n > 0)
    dispatch_inexact(self.dtype, "linalg.eig", [&]<class T>() {
      using Complex = std::complex<decltype(std::abs(T()))>;
      for (std::int64_t b = 0; b < a.count; ++b) {
        const T* first = a.at<T>(b);
        if (!std::all_of(first, first + static_cast<std::int64_t>(n) * n,
                         [](T x) { return std::isfinite(std::abs(x)); }))
          fail("torch.linalg.eig: input tensor should not contain infs or NaNs.");
        if (lapack::geev<T>(n, a.at<T>(b), n, out[0].as<Complex>() + b * n, v.at<Complex>(b)) > 0)
          not_converged("linalg.eig", "is ill-conditioned or has too many repeated eigenvalues.");
      }
    });
  store(out[1], v);
  return ValueList{out[0], out[1]};
}

/// The first k columns (dim -1) or rows (dim -2) of x; None stays None.
Arg narrowed(const GradCall& c, Arg x, std::int64_t dim, SymExpr k) {
  if (x.is_none()) return x;
  return c.build.call("aten.slice.Tensor", {x, dim, 0, c.build.size(k)});
}

std::vector<Node*> grad_svd(GradCall& c) {
  GradientSlots slots(c);
  if (!c.boolean("compute_uv"))
    fail("linalg.svd: the gradient needs the singular vectors, which compute_uv=False leaves out");
  Arg gu = gradient_or_none(c, 0), gvh = gradient_or_none(c, 2), u = c.results[0], vh = c.results[2];
  if (c.boolean("full_matrices")) {
    SymExpr k = Builder::tensor(c.results[1]).sizes.back();
    gu = narrowed(c, gu, -1, k);
    gvh = narrowed(c, gvh, -2, k);
    u = narrowed(c, u, -1, k);
    vh = narrowed(c, vh, -2, k);
  }
  slots["A"] =
      c.build
          .expression(
              "svd_backward(gU, gS, gVh, U, S, Vh)",
              {{"gU", gu}, {"gS", gradient_or_none(c, 1)}, {"gVh", gvh}, {"U", u}, {"S", c.results[1]}, {"Vh", vh}})
          .node();
  return slots;
}

template <bool hermitian>
std::vector<Node*> grad_eigen(GradCall& c) {
  GradientSlots slots(c);
  if (hermitian && !c.boolean("compute_v"))
    fail("linalg.eigh: the gradient needs the eigenvectors, which compute_v=False leaves out");
  slots[hermitian ? "A" : "self"] =
      c.build
          .expression("linalg_eig_backward(gL, gV, L, V, hermitian)", {{"gL", gradient_or_none(c, 0)},
                                                                       {"gV", gradient_or_none(c, 1)},
                                                                       {"L", c.results[0]},
                                                                       {"V", c.results[1]},
                                                                       {"hermitian", hermitian}})
          .node();
  return slots;
}

// The composites. They make the calls that PyTorch's C++ code makes.

Arg decompose_svd(DecomposeCall& c) {
  return c.build.expression("aten._linalg_svd.default(A, full, True, driver=d)",
                            {{"A", c.arg("A")}, {"full", c.arg("full_matrices")}, {"d", c.arg("driver")}});
}
Arg decompose_svdvals(DecomposeCall& c) {
  return c.build.expression("aten._linalg_svd.default(A, False, True, driver=d)[1]",
                            {{"A", c.arg("A")}, {"d", c.arg("driver")}});
}
/// torch.svd: returns V instead of its adjoint, and has `some` for reduced factors.
Arg decompose_old_svd(DecomposeCall& c) {
  if (!c.boolean("compute_uv")) fail_unsupported("svd with compute_uv=False");
  Node* all = c.build.call("aten._linalg_svd.default", {c.arg("self"), !c.boolean("some")});
  Arg v = c.build.expression("mH(vh)", {{"vh", c.build.getitem(all, 2)}});
  return Arg::tuple({c.build.getitem(all, 0), c.build.getitem(all, 1), v});
}
Arg decompose_eigh(DecomposeCall& c) {
  return c.build.expression("aten._linalg_eigh.default(A, u)", {{"A", c.arg("self")}, {"u", c.arg("UPLO")}});
}
Arg decompose_eigvalsh(DecomposeCall& c) {
  return c.build.expression("aten._linalg_eigh.default(A, u)[0]", {{"A", c.arg("self")}, {"u", c.arg("UPLO")}});
}
Arg decompose_eigvals(DecomposeCall& c) {
  return c.build.expression("aten.linalg_eig.default(A)[0]", {{"A", c.arg("self")}});
}

}  // namespace

void register_eigen(OpTable& t) {
  t.add("aten._linalg_svd.default", {.fake = fake_svd,
                                     .eval = eval_svd,
                                     .gradient = grad_svd,
                                     .all_results_differentiable = true,
                                     .expensive = true,
                                     .spectral = {.left = 0, .values = 1, .right = 2, .right_is_adjoint = true}});
  t.add("aten._linalg_eigh.default", {.fake = fake_eigh,
                                      .eval = eval_eigh,
                                      .gradient = grad_eigen<true>,
                                      .all_results_differentiable = true,
                                      .expensive = true,
                                      .spectral = {.left = 1, .values = 0}});
  t.add("aten.linalg_eig.default", {.fake = fake_eig,
                                    .eval = eval_eig,
                                    .gradient = grad_eigen<false>,
                                    .all_results_differentiable = true,
                                    .expensive = true,
                                    .spectral = {.left = 1, .values = 0, .orthogonal = false}});
  t.add("aten.linalg_svd.default",
        {.decompose = decompose_svd, .spectral = {.left = 0, .values = 1, .right = 2, .right_is_adjoint = true}});
  t.add("aten.linalg_svdvals.default", {.decompose = decompose_svdvals});
  t.add("aten.svd.default", {.decompose = decompose_old_svd, .spectral = {.left = 0, .values = 1, .right = 2}});
  t.add("aten.linalg_eigh.default", {.decompose = decompose_eigh, .spectral = {.left = 1, .values = 0}});
  t.add("aten.linalg_eigvalsh.default", {.decompose = decompose_eigvalsh});
  t.add("aten.linalg_eigvals.default", {.decompose = decompose_eigvals});
}

}  // namespace partita
