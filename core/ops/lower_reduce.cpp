#include <cmath>

#include "core/ops/lowerings.h"
#include "core/ops/promote.h"

namespace partita::loops {
namespace {

std::vector<bool> reduced_dims(LowerCall& call, std::size_t rank) {
  if (call.schema.index_of("dim") < 0) return std::vector<bool>(rank, true);
  return call.dims("dim", rank);
}

std::int64_t count(const LoweredTensor& t, const std::vector<bool>& reduced) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < reduced.size(); ++d)
    if (reduced[d]) n *= t.sizes[d];
  return n;
}

/// `self` converted to the result's dtype `out`, then to the dtype in which its sum is accumulated.
LoweredTensor summand(LowerCall& call, DType out) {
  return call.to.cast(call.to.cast(call.in("self"), out), arithmetic_dtype(out));
}

LoweredTensor divided(Lowering& to, const LoweredTensor& t, double by) {
  return pointwise(to, t.dtype, t.dtype, {t},
                   [=](ScalarBuilder& b, auto x) { return b.Div(x[0], b.constant(b.dtype(x[0]), by)); });
}

LoweredTensor extremum(LowerCall& call, ScalarOp op, std::vector<bool>& reduced, LoweredTensor& self) {
  self = call.in("self");
  if (is_complex(self.dtype)) fail_unsupported("extrema of complex numbers");
  self = call.to.cast(self, arithmetic_dtype(self.dtype));
  reduced = reduced_dims(call, self.dim());
  return call.to.reduce(
      self, self.dtype == DType::Bool ? (op == ScalarOp::Max ? ScalarOp::BitOr : ScalarOp::BitAnd) : op, reduced);
}

/// The position of the first element that equals the extremum `best` or is NaN, counted in row-major order over the
/// reduced dimensions.
LoweredTensor position(Lowering& to, const LoweredTensor& self, const LoweredTensor& best,
                       const std::vector<bool>& reduced) {
  LoweredTensor wide = to.expand(best, self.sizes);
  Sizes counted = self.sizes;
  for (std::size_t d = 0; d < counted.size(); ++d)
    if (!reduced[d]) counted[d] = 1;
  return to.reduce(DType::Int64, self.sizes, reduced, ScalarOp::Min, [=](Body& body, const Index& i) {
    Scalar x = body.read(self, i), m = body.read(wide, i);
    Scalar hit = body.b.Eq(x, m);
    if (is_floating(self.dtype)) hit = body.b.BitOr(hit, body.b.IsNan(x));
    Index at = i;
    std::int64_t n = 1;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (!reduced[d]) at[d] = 0;
      n *= counted[d];
    }
    return body.b.where(hit, body.scalar(body.math.linear(at, counted)), body.b.constant_int(DType::Int64, n));
  });
}

Status extremum_and_position(LowerCall& call, ScalarOp op) {
  std::vector<bool> reduced;
  LoweredTensor self;
  LoweredTensor best = extremum(call, op, reduced, self);
  call.give(best);
  call.give(position(call.to, self, best, reduced));
  return {};
}

Status position_only(LowerCall& call, ScalarOp op) {
  std::vector<bool> reduced;
  LoweredTensor self;
  LoweredTensor best = extremum(call, op, reduced, self);
  call.give(position(call.to, self, best, reduced));
  return {};
}

LoweredTensor logical(LowerCall& call, ScalarOp op) {
  LoweredTensor self = call.in("self");
  return call.to.reduce(call.to.cast(self, DType::Bool), op, reduced_dims(call, self.dim()));
}

struct Moments {
  LoweredTensor variance, mean;
};
/// Two passes: first the mean, then the squares of the differences from it. One pass would lose digits to cancellation.
Moments moments(LowerCall& call) {
  LoweredTensor x = summand(call, call.in("self").dtype);
  std::vector<bool> reduced = reduced_dims(call, x.dim());
  double n = static_cast<double>(count(x, reduced));
  double correction = call.has("correction") ? as_double(call.number("correction")) : 1;
  LoweredTensor mean = divided(call.to, call.to.reduce(x, ScalarOp::Add, reduced), n);
  LoweredTensor wide = call.to.expand(mean, x.sizes);
  LoweredTensor squares = call.to.reduce(x.dtype, x.sizes, reduced, ScalarOp::Add, [=](Body& body, const Index& i) {
    Scalar d = body.b.Sub(body.read(x, i), body.read(wide, i));
    return body.b.Mul(d, d);
  });
  return {divided(call.to, squares, std::max(n - correction, 0.0)), mean};
}

}  // namespace

Status lower_sum(LowerCall& call) {
  LoweredTensor x = summand(call, call.out().dtype);
  call.give(call.to.reduce(x, ScalarOp::Add, reduced_dims(call, x.dim())));
  return {};
}

/// With dtype a half type, the elements are not rounded to it before they are added.
Status lower_mean(LowerCall& call) {
  LoweredTensor x = call.to.cast(call.in("self"), arithmetic_dtype(call.out().dtype));
  std::vector<bool> reduced = reduced_dims(call, x.dim());
  call.give(divided(call.to, call.to.reduce(x, ScalarOp::Add, reduced), static_cast<double>(count(x, reduced))));
  return {};
}

Status lower_prod(LowerCall& call) {
  LoweredTensor x = summand(call, call.out().dtype);
  call.give(call.to.reduce(x, ScalarOp::Mul, reduced_dims(call, x.dim())));
  return {};
}

Status lower_amax(LowerCall& call) {
  std::vector<bool> reduced;
  LoweredTensor self;
  call.give(extremum(call, ScalarOp::Max, reduced, self));
  return {};
}

Status lower_amin(LowerCall& call) {
  std::vector<bool> reduced;
  LoweredTensor self;
  call.give(extremum(call, ScalarOp::Min, reduced, self));
  return {};
}

Status lower_max_dim(LowerCall& call) {
  return extremum_and_position(call, ScalarOp::Max);
}
Status lower_min_dim(LowerCall& call) {
  return extremum_and_position(call, ScalarOp::Min);
}
Status lower_argmax(LowerCall& call) {
  return position_only(call, ScalarOp::Max);
}
Status lower_argmin(LowerCall& call) {
  return position_only(call, ScalarOp::Min);
}

Status lower_any(LowerCall& call) {
  return call.give(logical(call, ScalarOp::BitOr)), Status();
}
Status lower_all(LowerCall& call) {
  return call.give(logical(call, ScalarOp::BitAnd)), Status();
}

Status lower_var(LowerCall& call) {
  return call.give(moments(call).variance), Status();
}

Status lower_std(LowerCall& call) {
  LoweredTensor v = moments(call).variance;
  call.give(pointwise(call.to, v.dtype, v.dtype, {v}, [](ScalarBuilder& b, auto x) { return b.Sqrt(x[0]); }));
  return {};
}

Status lower_var_mean(LowerCall& call) {
  Moments m = moments(call);
  call.give(m.variance);
  call.give(m.mean);
  return {};
}

Status lower_logsumexp(LowerCall& call) {
  LoweredTensor x = summand(call, call.out().dtype);
  std::vector<bool> reduced = reduced_dims(call, x.dim());
  LoweredTensor top = call.to.reduce(x, ScalarOp::Max, reduced);
  // An infinite maximum is not subtracted, since inf - inf is NaN.
  LoweredTensor shift = pointwise(call.to, x.dtype, x.dtype, {top}, [](ScalarBuilder& b, auto v) {
    DType t = b.dtype(v[0]);
    return b.where(b.Eq(b.Abs(v[0]), b.constant(t, INFINITY)), b.constant(t, 0), v[0]);
  });
  LoweredTensor wide = call.to.expand(shift, x.sizes);
  LoweredTensor total = call.to.reduce(x.dtype, x.sizes, reduced, ScalarOp::Add, [=](Body& body, const Index& i) {
    return body.b.Exp(body.b.Sub(body.read(x, i), body.read(wide, i)));
  });
  call.give(pointwise(call.to, x.dtype, x.dtype, {total, shift},
                      [](ScalarBuilder& b, auto v) { return b.Add(b.Log(v[0]), v[1]); }));
  return {};
}

/// Lowers linalg_vector_norm for the orders 1, 2 and +-inf.
Status lower_vector_norm(LowerCall& call) {
  LoweredTensor x = summand(call, call.out().dtype);
  if (is_complex(call.in("self").dtype)) fail_unsupported("norms of complex numbers");
  std::vector<bool> reduced = reduced_dims(call, x.dim());
  double order = as_double(call.number("ord"));
  LoweredTensor size = pointwise(call.to, x.dtype, x.dtype, {x}, [](ScalarBuilder& b, auto v) { return b.Abs(v[0]); });
  if (order == 1) return call.give(call.to.reduce(size, ScalarOp::Add, reduced)), Status();
  if (order == INFINITY) return call.give(call.to.reduce(size, ScalarOp::Max, reduced)), Status();
  if (order == -INFINITY) return call.give(call.to.reduce(size, ScalarOp::Min, reduced)), Status();
  if (order != 2) fail_unsupported("a vector norm of this order in loops");
  LoweredTensor squares =
      pointwise(call.to, x.dtype, x.dtype, {x}, [](ScalarBuilder& b, auto v) { return b.Mul(v[0], v[0]); });
  LoweredTensor total = call.to.reduce(squares, ScalarOp::Add, reduced);
  call.give(pointwise(call.to, x.dtype, x.dtype, {total}, [](ScalarBuilder& b, auto v) { return b.Sqrt(v[0]); }));
  return {};
}

}  // namespace partita::loops
