#include "core/ops/lowerings.h"
#include "core/ops/promote.h"

namespace partita::loops {
namespace {

void give_constant(LowerCall& call, const Number& value) {
  DType dtype = call.out().dtype;
  if (is_complex(dtype)) fail_unsupported("complex constants in loops");
  call.give(call.to.map(dtype, call.out_sizes(), [=](Body& body, const Index&) {
    auto* whole = std::get_if<std::int64_t>(&value);
    return whole ? body.b.constant_int(dtype, *whole) : body.b.constant(dtype, as_double(value));
  }));
}

/// start + step * i in the result's dtype. Integers are exact; float32 is computed in float32, other floating dtypes in
/// float64.
void give_range(LowerCall& call, const Number& start, const Number& step) {
  DType dtype = call.out().dtype;
  bool whole = !is_floating(dtype);
  call.give(call.to.map(dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    if (whole) return body.b.cast(body.scalar(i[0] * as_int(step) + as_int(start)), dtype);
    DType wide = dtype == DType::Float32 ? DType::Float32 : DType::Float64;
    Scalar at = body.b.cast(body.scalar(i[0]), wide);
    Scalar value =
        body.b.Add(body.b.Mul(at, body.b.constant(wide, as_double(step))), body.b.constant(wide, as_double(start)));
    return body.b.cast(value, dtype);
  }));
}

void give_triangle(LowerCall& call, bool lower) {
  LoweredTensor self = call.in("self");
  const std::size_t rank = self.dim();
  const std::int64_t diagonal = std::clamp(call.integer("diagonal"), -self.sizes[rank - 2], self.sizes[rank - 1]);
  call.give(call.to.map(self.dtype, self.sizes, [=](Body& body, const Index& i) {
    SymExpr row = i[i.size() - 2], column = i[i.size() - 1];
    Scalar keep = lower ? body.less(column, row + diagonal + 1) : body.less(row + (diagonal - 1), column);
    return body.b.where(keep, body.read(self, i), body.b.constant(self.dtype, 0));
  }));
}

}  // namespace

Status lower_full(LowerCall& call) {
  return give_constant(call, call.number("fill_value")), Status();
}

/// Lowers scalar_tensor(s), full_like and fill.Scalar.
Status lower_full_like(LowerCall& call) {
  for (std::string_view name : {"fill_value", "value", "s"})
    if (call.schema.index_of(name) >= 0) return give_constant(call, call.number(name)), Status();
  fail_unsupported("this form of a fill value");
}

Status lower_zeros(LowerCall& call) {
  return give_constant(call, std::int64_t{0}), Status();
}
Status lower_ones(LowerCall& call) {
  return give_constant(call, std::int64_t{1}), Status();
}

Status lower_arange(LowerCall& call) {
  Number start = call.schema.index_of("start") >= 0 ? call.number("start") : Number(std::int64_t{0});
  Number step = call.schema.index_of("step") >= 0 ? call.number("step") : Number(std::int64_t{1});
  give_range(call, start, step);
  return {};
}

Status lower_iota(LowerCall& call) {
  give_range(call, call.integer("start"), call.integer("step"));
  return {};
}

Status lower_eye(LowerCall& call) {
  DType dtype = call.out().dtype;
  call.give(call.to.map(dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Scalar same = body.b.Eq(body.scalar(i[0]), body.scalar(i[1]));
    return body.b.where(same, body.b.constant(dtype, 1), body.b.constant(dtype, 0));
  }));
  return {};
}

Status lower_tril(LowerCall& call) {
  return give_triangle(call, true), Status();
}
Status lower_triu(LowerCall& call) {
  return give_triangle(call, false), Status();
}

namespace {

/// A copy of an argument, broadcast to the result's sizes.
Status give_copy(LowerCall& call, std::string_view argument) {
  const DType dtype = call.out().dtype;
  const LoweredTensor from = call.to.expand(call.in(argument), call.out_sizes());
  call.give(call.to.map(dtype, from.sizes,
                        [=](Body& body, const Index& i) { return body.b.cast(body.read(from, i), dtype); }));
  return {};
}

}  // namespace

/// Lowers clone, _to_copy and convert_element_type.
Status lower_copy(LowerCall& call) {
  return give_copy(call, call.schema.args[0].name);
}

/// copy(self, src): src in self's dtype and sizes. Where elements of self share memory, the last write decides; loops
/// promise no order of writes, so that case is refused.
Status lower_copy_from(LowerCall& call) {
  const Sizes sizes = call.out_sizes(), strides = concrete_sizes(call.out().strides);
  std::int64_t elements = 1, reach = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    elements *= sizes[d];
    reach += (sizes[d] - 1) * strides[d];
  }
  if (reach < elements) fail_unsupported("a copy whose elements share memory");
  return give_copy(call, "src");
}

Status lower_fill(LowerCall& call) {
  return give_copy(call, "value");
}

}  // namespace partita::loops
