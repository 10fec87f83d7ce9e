#include "core/ops/lowerings.h"

namespace partita::loops {
namespace {

/// at::Reduction
enum class Reduction : std::int64_t { None, Mean, Sum };

/// Rows of log probabilities and their classes. A tensor [classes] counts as one row.
struct Rows {
  LoweredTensor x, target, weight;
  std::int64_t ignored;
  Reduction reduction;
  Bound bound;  ///< range of the classes

  explicit Rows(LowerCall& call)
      : x(call.in("self")),
        target(call.in("target")),
        ignored(call.integer("ignore_index")),
        reduction(static_cast<Reduction>(call.integer("reduction"))) {
    if (call.has("weight")) weight = call.in("weight");
    std::int64_t classes = x.sizes.back();
    if (classes == 0) fail_unsupported("a loss over 0 classes");
    bound = {call.to.origin, "the classes", classes, false};
    x = call.to.reshape(call.to.cast(x, arithmetic_dtype(x.dtype)), {x.numel() / classes, classes});
    target = call.to.reshape(target, {x.sizes[0]});
  }

  Scalar class_of(Body& body, SymExpr row) const { return body.b.cast(body.read(target, {row}), DType::Int64); }
  Scalar counts(Body& body, Scalar c) const { return body.b.Ne(c, body.b.constant_int(DType::Int64, ignored)); }
  /// The class as an index; 0 for an ignored class.
  Scalar checked(Body& body, Scalar c) const {
    return body.b.within(body.b.where(counts(body, c), c, body.b.constant_int(DType::Int64, 0)), bound);
  }
  SymExpr column(Body& body, Scalar c) const { return body.indirect(checked(body, c), x.sizes[1]); }
  /// The weight of a row; 0 when its class is ignored.
  Scalar row_weight(Body& body, Scalar c) const {
    Scalar w =
        weight.valid() ? body.b.cast(body.read(weight, {column(body, c)}), x.dtype) : body.b.constant(x.dtype, 1);
    return body.b.where(counts(body, c), w, body.b.constant(x.dtype, 0));
  }
};

}  // namespace

Status lower_nll_loss(LowerCall& call) {
  Rows rows(call);
  Lowering& to = call.to;
  Sizes one{rows.x.sizes[0]};
  DType dtype = rows.x.dtype;
  auto loss = [rows](Body& body, const Index& i) {
    Scalar c = rows.class_of(body, i[0]);
    Scalar value = body.b.Neg(body.b.Mul(body.read(rows.x, {i[0], rows.column(body, c)}), rows.row_weight(body, c)));
    return body.b.where(rows.counts(body, c), value, body.b.constant(rows.x.dtype, 0));
  };
  if (rows.reduction == Reduction::None && call.in("self").dim() == 2) {
    call.give(to.map(dtype, one, loss));
    call.give(to.constant(dtype, {}, 0));
    return {};
  }
  LoweredTensor total = to.reduce(dtype, one, {true}, ScalarOp::Add, loss);
  LoweredTensor weight = to.reduce(dtype, one, {true}, ScalarOp::Add, [rows](Body& body, const Index& i) {
    return rows.row_weight(body, rows.class_of(body, i[0]));
  });
  if (rows.reduction == Reduction::Mean)
    call.give(pointwise(to, dtype, dtype, {total, weight}, [](ScalarBuilder& b, auto v) { return b.Div(v[0], v[1]); }));
  else
    call.give(total);
  call.give(weight);
  return {};
}

Status lower_nll_loss_backward(LowerCall& call) {
  Rows rows(call);
  LoweredTensor grad = call.to.reshape(call.in("grad_output"), {call.in("grad_output").numel()});
  LoweredTensor total = call.to.reshape(call.in("total_weight"), {1});
  bool by_row = grad.sizes[0] != 1;
  call.give(call.to.map(rows.x.dtype, rows.x.sizes, [=](Body& body, const Index& i) {
    ScalarBuilder& b = body.b;
    DType t = rows.x.dtype;
    Scalar c = rows.class_of(body, i[0]);
    Scalar g = b.cast(body.read(grad, {by_row ? i[0] : SymExpr(0)}), t);
    if (rows.reduction == Reduction::Mean) g = b.Div(g, b.cast(body.read(total, {0}), t));
    Scalar value = b.Neg(b.Mul(rows.row_weight(body, c), g));
    Scalar hit = b.BitAnd(b.Eq(rows.checked(body, c), body.scalar(i[1])), rows.counts(body, c));
    return b.where(hit, value, b.constant(t, 0));
  }));
  return {};
}

}  // namespace partita::loops
