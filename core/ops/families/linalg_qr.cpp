// QR factorisation, and products of the Householder reflectors in which LAPACK returns Q.
#include <algorithm>

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

/// The result of LAPACK's geqrf in double: Householder vectors below the diagonals of `a`, R on and above them;
/// `tau` is [count, k].
struct Reflectors {
  Matrices a;
  Tensor tau;

  explicit Reflectors(const Tensor& t) : a(load(t, accumulate_dtype(t.dtype))) {
    std::int64_t k = std::min(a.rows, a.columns);
    tau = zeros(a.values.dtype, {a.count, k});
    if (k == 0) return;
    dispatch_inexact(a.values.dtype, "geqrf", [&]<class T>() {
      for (std::int64_t b : steps(a.count, 4096))
        lapack::geqrf<T>(static_cast<int>(a.rows), static_cast<int>(a.columns), a.at<T>(b), a.leading_dimension(),
                         tau.as<T>() + b * k);
    });
  }
};

/// The columns of q, which hold reflectors, become those of their product.
void multiply_out(const Matrices& q, const Tensor& tau) {
  const std::int64_t k = tau.sizes.back();
  if (q.rows == 0 || q.columns == 0) return;
  dispatch_inexact(q.values.dtype, "orgqr", [&]<class T>() {
    for (std::int64_t b : steps(q.count, 4096))
      lapack::orgqr<T>(static_cast<int>(q.rows), static_cast<int>(q.columns), static_cast<int>(k), q.at<T>(b),
                       q.leading_dimension(), static_cast<const T*>(tau.as<T>() + b * k));
  });
}

/// Copies the leading rows and columns of `from` that `to` has.
template <class T>
void copy_columns(const Matrices& from, const Matrices& to, bool upper_only) {
  for (std::int64_t b : steps(to.count, 4096))
    for (std::int64_t j = 0; j < std::min(from.columns, to.columns); ++j)
      for (std::int64_t i = 0; i < std::min(upper_only ? std::min(j + 1, from.rows) : from.rows, to.rows); ++i)
        to.at<T>(b)[j * to.rows + i] = from.at<T>(b)[j * from.rows + i];
}

enum class QrMode { Reduced, Complete, OnlyR };

QrMode qr_mode(const std::string& mode) {
  if (mode == "reduced") return QrMode::Reduced;
  if (mode == "complete") return QrMode::Complete;
  if (mode == "r") return QrMode::OnlyR;
  fail("qr received unrecognized mode '" + mode + "' but expected one of 'reduced' (default), 'r', or 'complete'");
}

Meta fake_qr(FakeCall& c) {
  const TensorMeta& a = c.tensor("A");
  check_matrix(a, "linalg.qr");
  QrMode mode = qr_mode(c.string("mode"));
  SymExpr m = rows_of(a), k = smaller(m, columns_of(a)), inner = mode == QrMode::Complete ? m : k;
  SymList batch = leading(a.sizes, 2);
  return MetaTuple{{mode == QrMode::OnlyR ? new_like(a, {0}) : column_major(a, with_batch(batch, {m, inner})),
                    column_major(a, with_batch(batch, {inner, columns_of(a)}))}};
}

Value eval_qr(EvalCall& c) {
  const Tensor& input = c.tensor("A");
  QrMode mode = qr_mode(c.string("mode"));
  Reflectors factors(input);
  std::int64_t m = factors.a.rows, n = factors.a.columns, inner = mode == QrMode::Complete ? m : std::min(m, n);
  const DType dtype = factors.a.values.dtype;
  Matrices q(dtype, batch_of(input), mode == QrMode::OnlyR ? 0 : m, inner), r(dtype, batch_of(input), inner, n);
  dispatch_inexact(dtype, "linalg.qr", [&]<class T>() {
    copy_columns<T>(factors.a, r, true);
    copy_columns<T>(factors.a, q, false);
  });
  multiply_out(q, factors.tau);
  return ValueList{q.values, r.values};
}

Meta fake_geqrf(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  check_matrix(self, "torch.geqrf");
  return MetaTuple{{column_major(self, self.sizes),
                    new_like(self, with_batch(leading(self.sizes, 2), {smaller(rows_of(self), columns_of(self))}))}};
}

Value eval_geqrf(EvalCall& c) {
  Reflectors factors(c.tensor("self"));
  return ValueList{factors.a.values, factors.tau};
}

void check_tau(FakeCall& c, const TensorMeta& a, const TensorMeta& tau, const char* what) {
  if (tau.dim() + 1 != a.dim()) fail(std::string(what) + ": tau must have one dimension less than the reflectors");
  if (!checked_sizes(c, leading(a.sizes, 2), leading(tau.sizes, 1), what))
    fail(std::string(what) + ": the batch dimensions of tau and of the reflectors differ");
  if (!checked(c, sym_le(tau.sizes.back(), smaller(rows_of(a), columns_of(a))), what))
    fail(std::string(what) + ": there are more scales in tau than reflectors");
  if (tau.dtype != a.dtype) fail(std::string(what) + ": tau's dtype is not the reflectors' dtype");
}

Meta fake_householder(FakeCall& c) {
  const TensorMeta& a = c.tensor("input");
  constexpr const char* what = "torch.linalg.householder_product";
  check_matrix(a, what);
  if (!checked(c, sym_le(columns_of(a), rows_of(a)), what))
    fail(std::string(what) + ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  check_tau(c, a, c.tensor("tau"), what);
  return column_major(a, a.sizes);
}

Value eval_householder(EvalCall& c) {
  const Tensor& input = c.tensor("input");
  Matrices q(load(input, accumulate_dtype(input.dtype)));
  multiply_out(q, load(c.tensor("tau"), q.values.dtype));
  return q.values;
}

Meta fake_ormqr(FakeCall& c) {
  const TensorMeta &a = c.tensor("self"), &other = c.tensor("input3");
  check_matrix(a, "torch.ormqr");
  check_matrix(other, "torch.ormqr");
  if (!checked_sizes(c, leading(a.sizes, 2), leading(other.sizes, 2), "torch.ormqr"))
    fail("torch.ormqr: batch dimensions of other should be equal to input.shape[:-2]");
  if (other.dtype != a.dtype) fail("torch.ormqr: Expected input and other to have the same dtype");
  check_tau(c, a, c.tensor("input2"), "torch.ormqr");
  if (!checked(c, sym_eq(rows_of(a), c.boolean("left") ? rows_of(other) : columns_of(other)), "torch.ormqr"))
    fail("torch.ormqr: other.shape[" + std::string(c.boolean("left") ? "-2" : "-1") +
         "] must be equal to input.shape[-2]");
  return column_major(other, other.sizes);
}

Value eval_ormqr(EvalCall& c) {
  const DType dtype = accumulate_dtype(c.tensor("input3").dtype);
  Matrices a(load(c.tensor("self"), dtype)), x(load(c.tensor("input3"), dtype));
  Tensor tau = load(c.tensor("input2"), dtype);
  std::int64_t k = tau.sizes.back();
  char op = !c.boolean("transpose") ? 'N' : is_complex(dtype) ? 'C' : 'T';
  if (x.rows > 0 && x.columns > 0 && k > 0)
    dispatch_inexact(dtype, "ormqr", [&]<class T>() {
      for (std::int64_t b : steps(x.count, 4096))
        lapack::ormqr<T>(c.boolean("left") ? 'L' : 'R', op, static_cast<int>(x.rows), static_cast<int>(x.columns),
                         static_cast<int>(k), static_cast<const T*>(a.at<T>(b)), a.leading_dimension(),
                         static_cast<const T*>(tau.as<T>() + b * k), x.at<T>(b), x.leading_dimension());
    });
  return x.values;
}

/// is_tall(A): whether A has more rows than columns.
Arg is_tall(const FormulaCall& f) {
  return f.guards().test(sym_lt(columns_of(f.tensor(0)), rows_of(f.tensor(0))), "linalg.qr");
}

}  // namespace

void register_linalg_qr(OpTable& t) {
  t.add_formula_functions({{"is_tall", is_tall}});
  t.add("aten.linalg_qr.default", fake_qr, eval_qr,
        {{"A",
          "refuse(\"The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
          "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.\") if mode == 'r' "
          "else refuse(\"The QR decomposition is not differentiable when mode='complete' and nrows > ncols\") "
          "if mode == 'complete' and is_tall(A) else linalg_qr_backward(grads[0], grads[1], result0, result1)"}},
        {.autograd = {.all_results_differentiable = true}, .cost = {.expensive = true}});
  t.add("aten.geqrf.default", fake_geqrf, eval_geqrf, {}, {.cost = {.expensive = true}});
  t.add("aten.linalg_householder_product.default", fake_householder, eval_householder,
        {{"input, tau", "householder_product_backward(matmul(result, mH(grad)), input, tau)"}},
        {.cost = {.expensive = true}});
  // The gradient of the reflectors is computed from K = Q grad_Q^H. K follows from the result and its gradient, or from
  // the other operand and its gradient.
  t.add("aten.ormqr.default", fake_ormqr, eval_ormqr,
        {{"self, input2, input3",
          "g = ormqr(self, input2, grad, left, not transpose) if output_mask[2] or left == transpose else None; "
          "K = None if not output_mask[0] and not output_mask[1] else matmul(g, mH(input3)) if left and transpose "
          "else matmul(result, mH(grad)) if left else matmul(mH(result), grad) if transpose else matmul(mH(g), "
          "input3); "
          "both = (None, None) if K is None else householder_product_backward(K, self, input2); "
          "(both[0], both[1], g)"}},
        {.cost = {.expensive = true}});
  t.add("aten.qr.default", {.program = "linalg_qr(self, 'reduced' if some else 'complete')"});
  t.add("aten.orgqr.default", {.program = "linalg_householder_product(self, input2)"});
}

}  // namespace partita
