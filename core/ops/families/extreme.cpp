// Extremes and their places.
#include <fmt/format.h>

#include "core/ops/families/lower_reduce.h"
#include "core/ops/families/reduce_parts.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

LoweredTensor extremum(LowerCall& call, ScalarOp op, std::vector<bool>& reduced, LoweredTensor& self) {
  self = call.in("self");
  if (is_complex(self.dtype)) fail("the extreme of complex numbers is not defined");
  self = call.to.cast(self, opmath_dtype(self.dtype));
  reduced = reduced_dims(call, self.dim());
  return call.to.reduce(
      self, self.dtype == DType::Bool ? (op == ScalarOp::Max ? ScalarOp::BitOr : ScalarOp::BitAnd) : op, reduced);
}

/// The position of the first element that equals the extremum `best` or is NaN, counted in row-major order over the
/// reduced dimensions.
LoweredTensor position(Lowering& to, const LoweredTensor& self, const LoweredTensor& best,
                       const std::vector<bool>& reduced) {
  LoweredTensor wide = to.expand(best, self.sizes);
  SymList counted = self.sizes;
  for (std::size_t d = 0; d < counted.size(); ++d)
    if (!reduced[d]) counted[d] = 1;
  return to.reduce(DType::Int64, self.sizes, reduced, ScalarOp::Min, [=](Body& body, const Index& i) {
    Scalar x = body.read(self, i), m = body.read(wide, i);
    Scalar hit = body.b.Eq(x, m);
    if (is_floating(self.dtype)) hit = body.b.BitOr(hit, body.b.IsNan(x));
    Index at = i;
    SymExpr n = 1;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (!reduced[d]) at[d] = 0;
      n = n * counted[d];
    }
    return body.b.where(hit, body.scalar(body.math.linear(at, counted)), body.b.index(n));
  });
}

void lower_aminmax(LowerCall& call) {
  std::vector<bool> reduced;
  LoweredTensor self;
  call.give(extremum(call, ScalarOp::Min, reduced, self));
  call.give(extremum(call, ScalarOp::Max, reduced, self));
}

void extremum_and_position(LowerCall& call, ScalarOp op) {
  std::vector<bool> reduced;
  LoweredTensor self;
  LoweredTensor best = extremum(call, op, reduced, self);
  call.give(best);
  call.give(position(call.to, self, best, reduced));
}

void position_only(LowerCall& call, ScalarOp op) {
  std::vector<bool> reduced;
  LoweredTensor self;
  LoweredTensor best = extremum(call, op, reduced, self);
  call.give(position(call.to, self, best, reduced));
}

void lower_amax(LowerCall& call) {
  std::vector<bool> reduced;
  LoweredTensor self;
  call.give(extremum(call, ScalarOp::Max, reduced, self));
}

void lower_amin(LowerCall& call) {
  std::vector<bool> reduced;
  LoweredTensor self;
  call.give(extremum(call, ScalarOp::Min, reduced, self));
}

void lower_max_dim(LowerCall& call) {
  extremum_and_position(call, ScalarOp::Max);
}

void lower_min_dim(LowerCall& call) {
  extremum_and_position(call, ScalarOp::Min);
}

void lower_argmax(LowerCall& call) {
  position_only(call, ScalarOp::Max);
}

void lower_argmin(LowerCall& call) {
  position_only(call, ScalarOp::Min);
}

/// Lines of no elements have no extreme.
void check_lines(const FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::vector<bool> reduced = reduced_dims(call, self.dim());
  for (std::size_t d = 0; d < self.dim(); ++d)
    if (reduced[d] && self.sizes[d].is(0))
      fail(fmt::format("{}(): Expected reduction dim {} to have non-zero size.", call.schema.base.substr(5), d));
}

template <DType (*rule)(DType, std::optional<DType>)>
Meta fake_extreme(FakeCall& call) {
  check_lines(call);
  return fake<rule>(call);
}

Meta fake_extreme_dim(FakeCall& call) {
  check_lines(call);
  return pair_of(reduced_meta(call, call.tensor("self").dtype), reduced_meta(call, DType::Int64));
}

Meta fake_aminmax(FakeCall& call) {
  check_lines(call);
  TensorMeta one = reduced_meta(call, call.tensor("self").dtype);
  return pair_of(one, one);
}

}  // namespace

void register_extreme(OpTable& t) {
  t.default_family = Family::Reduction;
  const ReductionRow rows[] = {
      {"aten.amax.default", fake_extreme<same_dtype>, nullptr, "extreme_backward(grad, result, self, dim, keepdim)",
       lower_amax, true},
      {"aten.amin.default", fake_extreme<same_dtype>, nullptr, "extreme_backward(grad, result, self, dim, keepdim)",
       lower_amin},
      {"aten.max.default", fake_extreme<same_dtype>, nullptr, "evenly_distribute_backward(grad, self, result)",
       lower_amax, true},
      {"aten.min.default", fake_extreme<same_dtype>, nullptr, "evenly_distribute_backward(grad, self, result)",
       lower_amin, true},
      {"aten.max.dim", fake_extreme_dim, nullptr,
       "value_selecting_reduction_backward(grad, dim, result1, self, keepdim)", lower_max_dim, true},
      {"aten.min.dim", fake_extreme_dim, nullptr,
       "value_selecting_reduction_backward(grad, dim, result1, self, keepdim)", lower_min_dim, true},
      {"aten.aminmax.default", fake_aminmax, nullptr,
       "sum_of(None if grads[0] is None else extreme_backward(grads[0], result0, self, dim, keepdim), "
       "None if grads[1] is None else extreme_backward(grads[1], result1, self, dim, keepdim))",
       lower_aminmax},
      {"aten.argmax.default", fake_extreme<index_dtype>, nullptr, "", lower_argmax, true},
      {"aten.argmin.default", fake_extreme<index_dtype>, nullptr, "", lower_argmin},
  };
  add_reductions(t, rows);
}

}  // namespace partita
