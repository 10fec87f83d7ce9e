// LU factorisations and what is made of them: solutions, inverses, determinants.
#include <cmath>

#include "core/ops/families/linalg.h"
#include "core/ops/formula.h"
#include "core/ops/gradients.h"
#include "core/ops/kernels/lapack.h"
#include "core/ops/layout.h"
#include "core/tensor/convert.h"

namespace partita {

namespace {

using namespace kernels;

/// Factorises matrices in place. Pivots are row numbers from 1, `smaller side` of them for each matrix.
struct Factors {
  Matrices lu;
  Tensor pivots, info;

  explicit Factors(Matrices m) : lu(std::move(m)) {
    std::int64_t steps = std::min(lu.rows, lu.columns);
    pivots = zeros(DType::Int32, {lu.count, steps});
    info = zeros(DType::Int32, {lu.count});
    if (lu.rows == 0 || lu.columns == 0) return;
    dispatch_lapack(lu.values.dtype, "lu_factor", [&]<class T>() {
      for (std::int64_t i = 0; i < lu.count; ++i)
        info.as<std::int32_t>()[i] =
            lapack::getrf<T>(static_cast<int>(lu.rows), static_cast<int>(lu.columns), lu.at<T>(i),
                             lu.leading_dimension(), pivots.as<std::int32_t>() + i * steps);
    });
  }
};

/// Writes a dense row-major tensor's elements into an output of as many elements.
void store(const Tensor& out, const Tensor& values) {
  if (out.storage && out.numel() > 0) out.copy_from(values.view_as(out.sizes, row_major_strides(out.sizes), 0));
}
void store(const Tensor& out, const Matrices& m) {
  if (out.numel() > 0) out.copy_from(m.values.view_as(out.sizes, m.values.strides, 0));
}

void check_info(const EvalCall& c, const Tensor& info, const char* what) {
  if (!c.boolean("check_errors")) return;
  for (std::int64_t i = 0; i < info.numel(); ++i)
    if (int at = info.as<std::int32_t>()[i]; at > 0)
      fail(std::string(what) + ": The factor's diagonal element " + std::to_string(at) +
           " is zero: the input matrix is singular.");
}

/// op(A) X = B, or X op(A) = B when not `left`; `x` holds B and becomes X. op is the adjoint when `adjoint`.
/// X A = B is solved as its transpose, A^T X^T = B^T, so x is then the transpose of what the caller means.
void solve_factored(const Matrices& lu, const Tensor& pivots, const Matrices& x, char op) {
  if (x.rows == 0 || x.columns == 0) return;
  dispatch_lapack(lu.values.dtype, "lu_solve", [&]<class T>() {
    for (std::int64_t i = 0; i < x.count; ++i)
      lapack::getrs<T>(op, static_cast<int>(lu.rows), static_cast<int>(x.columns), static_cast<const T*>(lu.at<T>(i)),
                       lu.leading_dimension(), static_cast<const int*>(pivots.as<std::int32_t>() + i * lu.rows),
                       x.at<T>(i), x.leading_dimension());
  });
}

template <class T>
void conjugate_all(const Matrices& m) {
  if constexpr (is_complex_type<T>::value)
    for (std::int64_t i = 0; i < m.values.numel(); ++i) m.values.as<T>()[i] = std::conj(m.values.as<T>()[i]);
}

Tensor transposed(const Tensor& t) {
  Tensor out = t;
  std::size_t n = out.sizes.size();
  std::swap(out.sizes[n - 1], out.sizes[n - 2]);
  std::swap(out.strides[n - 1], out.strides[n - 2]);
  return out;
}

/// The solution as a tensor of B's sizes.
Tensor solve_with(const Matrices& lu, const Tensor& pivots, const Tensor& b, const Sizes& batch, bool left,
                  bool adjoint) {
  Matrices x(left ? b : transposed(b), batch);
  bool complex = is_complex(b.dtype);
  // X A^H = B is conj(A) X^T = B^T: conjugates on both sides of A Y = conj(B^T).
  bool conjugate = !left && adjoint && complex;
  auto flip = [&] { dispatch_lapack(b.dtype, "lu_solve", [&]<class T>() { conjugate_all<T>(x); }); };
  if (conjugate) flip();
  solve_factored(lu, pivots, x, left ? (adjoint ? 'C' : 'N') : (adjoint ? 'N' : 'T'));
  if (conjugate) flip();
  return left ? x.values : transposed(x.values);
}

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
  std::vector<Tensor> out = allocate_all(c, fake_lu_factor);
  Factors f{Matrices(c.tensor("A"))};
  check_info(c, f.info, "torch.linalg.lu_factor_ex");
  store(out[0], f.lu);
  store(out[1], f.pivots);
  store(out[2], f.info);
  return ValueList{out[0], out[1], out[2]};
}

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

/// f(matrix number, diagonal of U as a function of position, sign of the permutation)
template <class T, class F>
void each_diagonal(const Factors& f, F use) {
  std::int64_t n = f.lu.rows;
  for (std::int64_t i = 0; i < f.lu.count; ++i) {
    bool odd = false;
    for (std::int64_t k = 0; k < n; ++k) odd ^= f.pivots.as<std::int32_t>()[i * n + k] != k + 1;
    use(i, [&, i](std::int64_t k) { return f.lu.at<T>(i)[k * n + k]; }, odd ? T(-1) : T(1));
  }
}

Value eval_det(EvalCall& c) {
  std::vector<Tensor> out = allocate_all(c, fake_det);
  Factors f{Matrices(c.tensor("A"))};
  dispatch_lapack(out[0].dtype, "det", [&]<class T>() {
    each_diagonal<T>(f, [&](std::int64_t i, auto diagonal, T sign) {
      T product = sign;
      for (std::int64_t k = 0; k < f.lu.rows; ++k) product *= diagonal(k);
      out[0].as<T>()[i] = product;
    });
  });
  store(out[1], f.lu);
  store(out[2], f.pivots);
  return ValueList{out[0], out[1], out[2]};
}

Value eval_slogdet(EvalCall& c) {
  std::vector<Tensor> out = allocate_all(c, fake_slogdet);
  Factors f{Matrices(c.tensor("A"))};
  dispatch_lapack(out[0].dtype, "slogdet", [&]<class T>() {
    using Real = decltype(std::abs(T()));
    each_diagonal<T>(f, [&](std::int64_t i, auto diagonal, T sign) {
      Real logarithm = 0;
      for (std::int64_t k = 0; k < f.lu.rows; ++k) {
        Real size = std::abs(diagonal(k));
        sign *= size == 0 ? T(0) : diagonal(k) / size;
        logarithm += std::log(size);
      }
      out[0].as<T>()[i] = sign;
      out[1].as<Real>()[i] = logarithm;
    });
  });
  store(out[2], f.lu);
  store(out[3], f.pivots);
  return ValueList{out[0], out[1], out[2], out[3]};
}

Meta fake_inv(FakeCall& c) {
  const TensorMeta& a = c.tensor("A");
  check_square(c, a, "linalg.inv");
  return MetaTuple{{column_major(a, a.sizes), int32_like(a, leading(a.sizes, 2))}};
}

Value eval_inv(EvalCall& c) {
  std::vector<Tensor> out = allocate_all(c, fake_inv);
  const Tensor& a = c.tensor("A");
  Factors f{Matrices(a)};
  check_info(c, f.info, "linalg.inv");
  std::int64_t n = f.lu.rows;
  Matrices x(a.dtype, batch_of(a), n, n);
  dispatch_lapack(a.dtype, "inv", [&]<class T>() {
    for (std::int64_t i = 0; i < x.count; ++i)
      for (std::int64_t k = 0; k < n; ++k) x.at<T>(i)[k * n + k] = T(1);
  });
  solve_factored(f.lu, f.pivots, x, 'N');
  store(out[0], x);
  store(out[1], f.info);
  return ValueList{out[0], out[1]};
}

/// B is a vector, or a batch of vectors as large as A's batch.
template <class Call, class Sizes>
bool vector_of(const Call& c, const Sizes& a, const Sizes& b) {
  if (b.size() == 1) return true;
  if (b.size() + 1 != a.size()) return false;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if constexpr (std::is_same_v<Call, FakeCall>) {
      if (!c.test(sym_eq(a[i], b[i]), "solve of vectors")) return false;
    } else if (a[i] != b[i]) {
      return false;
    }
  }
  return true;
}

Meta fake_solve(FakeCall& c) {
  const TensorMeta &a = c.tensor("A"), &b = c.tensor("B");
  check_square(c, a, "linalg.solve");
  bool vectors = vector_of(c, a.sizes, b.sizes), left = c.boolean("left");
  TensorMeta matrix = b;
  if (vectors) matrix.sizes.push_back(1);
  check_matrix(matrix, "linalg.solve");
  if (!c.test(sym_eq(rows_of(a), left ? rows_of(matrix) : columns_of(matrix)), "linalg.solve"))
    fail("linalg.solve: Incompatible shapes of A and B for the equation " + std::string(left ? "AX = B" : "XA = B"));
  SymList sizes = common_batch(c, a, matrix);
  sizes.push_back(rows_of(matrix));
  if (!vectors) sizes.push_back(columns_of(matrix));
  return MetaTuple{{left ? column_major(b, sizes) : new_like(b, sizes), column_major(a, a.sizes),
                    int32_like(a, leading(a.sizes, 1)), int32_like(a, leading(a.sizes, 2))}};
}

Value eval_solve(EvalCall& c) {
  std::vector<Tensor> out = allocate_all(c, fake_solve);
  const Tensor& a = c.tensor("A");
  Tensor b = c.tensor("B");
  bool left = c.boolean("left");
  if (vector_of(c, a.sizes, b.sizes)) {
    if (!left) fail("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False.");
    b.sizes.push_back(1);
    b.strides.push_back(1);
  }
  Sizes batch = common_batch(a, b);
  Factors f{Matrices(a)};
  check_info(c, f.info, "torch.linalg.solve_ex");
  store(out[1], f.lu);
  store(out[2], f.pivots);
  store(out[3], f.info);
  Tensor pivots = expand_batch(out[2], batch, 1);
  Tensor x = solve_with(Matrices(f.lu.values, batch), pivots, b, batch, left, false);
  if (out[0].numel() > 0) {
    Tensor view = out[0];
    if (view.sizes.size() < x.sizes.size()) {
      view.sizes.push_back(1);
      view.strides.push_back(1);
    }
    view.copy_from(x);
  }
  return ValueList{out[0], out[1], out[2], out[3]};
}

Meta fake_lu_solve(FakeCall& c) {
  const TensorMeta &lu = c.tensor("LU"), &b = c.tensor("B");
  check_square(c, lu, "torch.linalg.lu_solve");
  check_matrix(b, "torch.linalg.lu_solve");
  bool left = c.boolean("left");
  if (!c.test(sym_eq(rows_of(lu), left ? rows_of(b) : columns_of(b)), "linalg.lu_solve"))
    fail("linalg.lu_solve: Incompatible shapes of LU and B");
  SymList sizes = with_batch(common_batch(c, lu, b), {rows_of(b), columns_of(b)});
  return left ? column_major(b, sizes) : new_like(b, sizes);
}

Value eval_lu_solve(EvalCall& c) {
  Tensor out = allocate(c, fake_lu_solve);
  const Tensor &lu = c.tensor("LU"), &b = c.tensor("B");
  Sizes batch = common_batch(lu, b);
  Tensor pivots = expand_batch(load(c.tensor("pivots"), DType::Int32), batch, 1);
  Tensor x = solve_with(Matrices(lu, batch), pivots, b, batch, c.boolean("left"), c.boolean("adjoint"));
  if (out.numel() > 0) out.copy_from(x);
  return out;
}

/// P, L, U of matrices of lu's sizes; what is not asked for has size [0].
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
  check_matrix(c.tensor("LU_data"), "torch.lu_unpack");
  return triangles(c.tensor("LU_data"), c.boolean("unpack_data"), c.boolean("unpack_pivots"));
}

/// Fills those of P, L, U that are not of size [0].
void unpack(const Matrices& lu, const std::int32_t* pivots, const std::vector<Tensor>& out, bool data,
            bool permutation) {
  std::int64_t m = lu.rows, n = lu.columns, k = std::min(m, n);
  dispatch_lapack(lu.values.dtype, "lu_unpack", [&]<class T>() {
    std::vector<std::int64_t> row(static_cast<std::size_t>(m));
    for (std::int64_t b = 0; b < lu.count; ++b) {
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
        if (with < 0 || with >= m) fail("torch.lu_unpack: a pivot is out of range");
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
  Factors f{Matrices(c.tensor("A"))};
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

// Gradients. Every factor is a function of A through A itself, so gradients of LU data go by the factors P, L, U.

Arg gradient_or_none(const GradCall& c, std::size_t i) {
  return c.grads[i] ? Arg(c.grads[i]) : Arg();
}

std::vector<Node*> grad_lu(GradCall& c) {
  GradientSlots slots(c);
  slots["A"] = c.build
                   .expression("lu_backward(gL, gU, P, L, U)", {{"gL", gradient_or_none(c, 1)},
                                                                {"gU", gradient_or_none(c, 2)},
                                                                {"P", c.results[0]},
                                                                {"L", c.results[1]},
                                                                {"U", c.results[2]}})
                   .node();
  return slots;
}

std::vector<Node*> grad_unpack(GradCall& c) {
  GradientSlots slots(c);
  slots["LU_data"] =
      c.build
          .expression("lu_data_backward(gL, gU, LU)",
                      {{"gL", gradient_or_none(c, 1)}, {"gU", gradient_or_none(c, 2)}, {"LU", c.arg("LU_data")}})
          .node();
  return slots;
}

/// log|det| moves by Re tr(A^-1 dA), the angle of the sign by its imaginary part.
std::vector<Node*> grad_slogdet(GradCall& c) {
  GradientSlots slots(c);
  std::vector<std::pair<std::string, Arg>> names = {{"gsign", gradient_or_none(c, 0)},
                                                    {"g", gradient_or_none(c, 1)},
                                                    {"sign", c.results[0]},
                                                    {"LU", c.results[2]},
                                                    {"pivots", c.results[3]}};
  auto build = [&](const char* formula) { return c.build.expression(formula, names); };
  bool turns = c.grads[0] && is_complex(c.tensor("A").dtype);
  if (!c.grads[1] && !turns) return slots;
  if (turns) {
    names.emplace_back("w", build("conj(gsign) * sign"));
    Arg angle = build("(conj(w) - w) * 0.5");
    names.emplace_back("angle", angle);
    names.emplace_back("d", c.grads[1] ? build("g + angle") : angle);
  } else {
    names.emplace_back("d", c.grads[1]);
  }
  slots["A"] = build("lu_diagonal_solve(d, LU, pivots)").node();
  return slots;
}

std::vector<Node*> grad_solve(GradCall& c) {
  GradientSlots slots(c);
  const TensorMeta &a = c.tensor("A"), &b = c.tensor("B");
  bool vectors = vector_of(static_cast<const FakeCall&>(c), a.sizes, b.sizes);
  std::vector<std::pair<std::string, Arg>> names = {{"grad", c.grads[0]},
                                                    {"LU", c.results[1]},
                                                    {"pivots", c.results[2]},
                                                    {"X", c.results[0]},
                                                    {"left", c.arg("left")}};
  auto build = [&](const char* formula) { return c.build.expression(formula, names); };
  if (vectors) {
    names[0].second = build("unsqueeze(grad, -1)");
    names[3].second = build("unsqueeze(X, -1)");
  }
  names.emplace_back("gB", build("linalg_lu_solve(LU, pivots, grad, left=left, adjoint=True)"));
  if (c.want("A")) slots["A"] = build(c.boolean("left") ? "-matmul(gB, mH(X))" : "-matmul(mH(X), gB)").node();
  if (c.want("B")) slots["B"] = build(vectors ? "aten.squeeze.dim(gB, -1)" : "gB").node();
  return slots;
}

std::vector<Node*> grad_lu_solve(GradCall& c) {
  GradientSlots slots(c);
  bool left = c.boolean("left"), adjoint = c.boolean("adjoint");
  std::vector<std::pair<std::string, Arg>> names = {
      {"grad", c.grads[0]}, {"LU", c.arg("LU")}, {"pivots", c.arg("pivots")},
      {"X", c.results[0]},  {"left", left},      {"other", !adjoint}};
  auto build = [&](const char* formula) { return c.build.expression(formula, names); };
  names.emplace_back("gB", build("linalg_lu_solve(LU, pivots, grad, left=left, adjoint=other)"));
  if (c.want("B")) slots["B"] = names.back().second.node();
  if (!c.want("LU")) return slots;
  const char* of_a = left ? (adjoint ? "-matmul(X, mH(gB))" : "-matmul(gB, mH(X))")
                          : (adjoint ? "-matmul(mH(gB), X)" : "-matmul(mH(X), gB)");
  Arg ga = build(of_a);
  ga = sum_to_size(c.build, ga.node(), c.tensor("LU").sizes);
  names.emplace_back("gA", ga);
  names.emplace_back("F", build("lu_unpack(LU, pivots)"));
  names.emplace_back("PgA", build("matmul(mT(F[0]), gA)"));
  slots["LU"] = build("tril(matmul(PgA, mH(F[2])), -1) + triu(matmul(mH(F[1]), PgA))").node();
  return slots;
}

}  // namespace

void register_lu(OpTable& t) {
  t.add("aten.linalg_lu_factor_ex.default", {.fake = fake_lu_factor,
                                             .eval = eval_lu_factor,
                                             .derivative = {{"A", "lu_factor_backward(grad, result0, result1)"}},
                                             .expensive = true});
  t.add("aten._linalg_det.default", {.fake = fake_det,
                                     .eval = eval_det,
                                     .derivative = {{"A", "lu_diagonal_solve(grad * conj(result0), result1, result2)"}},
                                     .expensive = true});
  t.add("aten._linalg_slogdet.default", {.fake = fake_slogdet,
                                         .eval = eval_slogdet,
                                         .gradient = grad_slogdet,
                                         .all_results_differentiable = true,
                                         .expensive = true});
  t.add("aten.linalg_inv_ex.default", {.fake = fake_inv,
                                       .eval = eval_inv,
                                       .derivative = {{"A", "-matmul(mH(result0), matmul(grad, mH(result0)))"}},
                                       .expensive = true});
  t.add("aten._linalg_solve_ex.default",
        {.fake = fake_solve, .eval = eval_solve, .gradient = grad_solve, .expensive = true});
  t.add("aten.linalg_lu_solve.default",
        {.fake = fake_lu_solve, .eval = eval_lu_solve, .gradient = grad_lu_solve, .expensive = true});
  t.add("aten.linalg_lu.default",
        {.fake = fake_lu, .eval = eval_lu, .gradient = grad_lu, .all_results_differentiable = true, .expensive = true});
  t.add("aten.lu_unpack.default",
        {.fake = fake_unpack, .eval = eval_unpack, .gradient = grad_unpack, .all_results_differentiable = true});
}

}  // namespace partita
