// Operators on whole slices along one dimension: index_select, index_add, index_copy, index_fill, index_reduce.
#include "core/ops/families/lower_index.h"
#include "core/ops/record/formula.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

void lower_index_select(LowerCall& call) {
  const LoweredTensor self = as_vector(call, call.in("self")), index = as_vector(call, integer_index(call, "index"));
  const std::size_t dim = call.dim("dim", self.dim());
  Reach reach(call, index, dim, self.sizes[dim], false);
  reach.bound.space = "index out of range in self: " + reach.bound.space;
  SymList sizes = self.sizes;
  sizes[dim] = index.sizes[0];
  call.give(call.to.map(self.dtype, sizes, [=](Body& body, const Index& i) {
    Index at = i;
    at[dim] = reach.position(body, {i[dim]});
    return body.read(self, at);
  }));
}

/// The values, put to the slices of `self` that the index names.
Put to_slices(LowerCall& call, const LoweredTensor& self, ElementFunction value, bool wraps = false) {
  const std::size_t dim = call.dim("dim", self.dim());
  const Reach reach(call, as_vector(call, integer_index(call, "index")), dim, self.sizes[dim], wraps);
  SymList sizes = self.sizes;
  sizes[dim] = reach.index.sizes[0];
  return {sizes, std::move(value), [=](Body& body, const Index& i) {
            Index at = i;
            at[dim] = reach.position(body, {i[dim]});
            return at;
          }};
}

/// The elements of the argument `source`; a number is one slice of numbers.
ElementFunction source_value(LowerCall& call, const LoweredTensor& self) {
  LoweredTensor source = call.in("source");
  if (source.dim() != self.dim()) {
    SymList sizes = self.sizes;
    sizes[call.dim("dim", self.dim())] = call.in("index").numel();
    source = call.to.reshape(source, sizes);
  }
  return [source](Body& body, const Index& i) { return body.read(source, i); };
}

void lower_index_add(LowerCall& call) {
  const LoweredTensor self = as_vector(call, call.in("self"));
  const DType dtype = self.dtype, wide = opmath_dtype(dtype);
  if (!call.evaluates && (dtype == DType::Bool || is_complex(dtype)))
    fail_unsupported("index_add of " + std::string(torch_name(dtype)));
  ElementFunction value = source_value(call, self);
  if (call.arg("alpha") != Arg(1))
    value = [value, wide, alpha = number_value(call, "alpha", dtype)](Body& body, const Index& i) {
      return body.b.Mul(body.b.cast(value(body, i), wide), body.b.cast(alpha(body, i), wide));
    };
  call.give(combined(call, self, to_slices(call, self, value), {ScalarOp::Add}));
}

void lower_index_reduce(LowerCall& call) {
  const LoweredTensor self = as_vector(call, call.in("self"));
  const Put put = to_slices(call, self, source_value(call, self));
  call.give(combined(call, self, put, combination(call.string("reduce")), call.boolean("include_self")));
}

void lower_index_copy(LowerCall& call) {
  const LoweredTensor self = as_vector(call, call.in("self"));
  call.give(replaced(call, self, to_slices(call, self, source_value(call, self))));
}

void lower_index_fill(LowerCall& call) {
  const LoweredTensor self = as_vector(call, call.in("self"));
  ElementFunction value;
  if (call.is_tensor("value"))
    value = [v = call.to.reshape(call.in("value"), {})](Body& body, const Index&) { return body.read(v, {}); };
  else
    value = number_value(call, "value", self.dtype);
  call.give(replaced(call, self, to_slices(call, self, value, true)));
}

Meta fake_index_select(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &index = c.tensor("index");
  std::int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  if (index.dim() > 1) fail("index_select(): Index is supposed to be a vector");
  if (index.dtype != DType::Int64 && index.dtype != DType::Int32)
    fail("index_select(): Expected dtype int32 or int64 for index");
  SymList sizes = self.sizes;
  if (!sizes.empty())
    sizes[static_cast<std::size_t>(dim)] = index.numel();
  else if (!checked(c, sym_eq(index.numel(), 1), "index_select of a number"))
    fail("index_select(): Index to scalar can have only 1 value, got " + index.numel().str() + " value(s)");
  return new_like(self, sizes);
}

/// Fails unless index_add's and similar operators' index is a vector or a number.
void check_vector(const FakeCall& c) {
  if (const std::size_t rank = c.tensor("index").dim(); rank > 1)
    fail(c.schema.base.substr(5) + "(): Index is supposed to be a vector, but got " + std::to_string(rank) +
         " dimensions");
}

Meta fake_like_self(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &source = c.tensor("source");
  const std::size_t dim = wrap_dim(c.integer("dim"), self.dim());
  check_vector(c);
  if (self.dtype != source.dtype)
    fail(c.schema.base.substr(5) + "(): self and source must have the same scalar type, but got " +
         std::string(torch_name(self.dtype)) + " and " + std::string(torch_name(source.dtype)));
  SymList slices = self.sizes;
  (self.dim() == 0 ? slices.emplace_back(1) : slices[dim]) = c.tensor("index").numel();
  const bool fits = self.dim() == 0 || source.dim() == 0 ? checked(c, sym_eq(source.numel(), product(slices)), "slices")
                                                         : checked_sizes(c, source.sizes, slices, "slices");
  if (!fits) fail(c.schema.base.substr(5) + "(): source does not have the shape of the indexed part");
  return new_like(self, self.sizes);
}

Meta fake_fill(FakeCall& c) {
  check_vector(c);
  if (c.is_tensor("value") && !checked(c, sym_eq(c.tensor("value").numel(), 1), "index_fill"))
    fail("index_fill_ only supports a 0-dimensional value tensor");
  return preserving_self(c);
}

Meta fake_index_reduce(FakeCall& c) {
  const std::string how = c.string("reduce");
  if (how != "prod" && how != "mean" && how != "amax" && how != "amin")
    fail("index_reduce(): reduce argument must be either prod, mean, amax or amin, got " + how);
  return fake_like_self(c);
}

/// An index that occurs twice fills its slice once, so PyTorch's autograd removes duplicates, whose number is known
/// only at run time. This formula instead marks the filled elements, and gives the same sum.
constexpr std::string_view value_of_fill =
    "sum(masked_fill(grad, eq(aten.index_fill.int_Scalar(ones_like(grad), dim, index, 0), 1), 0.0))";

/// written(grad, dim, index, source): the gradient of `source`, the slices that index_add or index_copy wrote.
Arg written(const FormulaCall& f) {
  return f(
      "expand(index_select(x0, x1, x2), sizes(x3)) if not dim(x3) == 0 else "
      "index_select(x0, x1, x2 if dim(x2) == 0 else aten.squeeze.dim(x2, 0))");
}

/// As index_reduce_backward of FunctionsManual.cpp. Elements that equal the extreme share the gradient equally. For
/// prod, a source that is the only zero of its product gets the product of the other factors. Gives the gradients of
/// self and source.
std::string_view index_reduce_formula(Combination how) {
  if (how.op == ScalarOp::Mul)
    return "own = masked_fill(self, eq(self, 0), 1); "
           "of_self = grad * index_reduce(own, dim, index, source, reduce, include_self=include_self) / own; "
           "zero = eq(source, 0); "
           "zeros = index_add(zeros_like(self), dim, index, aten._to_copy.default(zero, dtype=dtype(self))); "
           "single = bitwise_and(zero, eq(index_select(zeros, dim, index), 1)); "
           "source1 = masked_fill(source, single, 1); "
           "others = index_reduce(self, dim, index, source1, reduce, include_self=include_self); "
           "at_zero = index_select(grad * others, dim, index); "
           "elsewhere = index_select(grad * result, dim, index) / masked_fill(source, zero, 1); "
           "(of_self, where(single, at_zero, elsewhere))";
  if (how.mean)
    return "n = index_add(ones_like(grad) if include_self else zeros_like(grad), dim, index, ones_like(source)); "
           "share = grad / masked_fill(n, eq(n, 0), 1); "
           "(share, index_select(share, dim, index))";
  return "mine = aten._to_copy.default(eq(self, result), dtype=dtype(self)); "
         "theirs = aten._to_copy.default(eq(source, index_select(result, dim, index)), dtype=dtype(self)); "
         "share = grad / index_add(mine, dim, index, theirs); "
         "(mine * share, theirs * index_select(share, dim, index))";
}

std::vector<Node*> grad_index_reduce(GradCall& c) {
  std::vector<Node*> slots =
      apply_formulas({{"self, source", index_reduce_formula(combination(c.string("reduce")))}}, c);
  Node*& of_self = slots[0];
  if (of_self && !c.boolean("include_self"))
    of_self = c.build.call("aten.index_fill.int_Scalar", {of_self, c.arg("dim"), c.arg("index"), 0});
  return slots;
}

}  // namespace

void register_index_along(OpTable& t) {
  t.default_family = Family::Index;
  t.add_formula_functions({{"written", written}});
  t.add("aten.index_select.default", fake_index_select, nullptr,
        {{"self", "aten.index_add.default(zeros_of(self, grad), dim, index, grad)"}}, {.lower = lower_index_select});
  t.add("aten.index_add.default", fake_like_self, nullptr,
        {{"self", "grad"}, {"source", "maybe_multiply(written(grad, dim, index, source), alpha)"}},
        {.lower = lower_index_add});
  t.add("aten.index_copy.default", fake_like_self, nullptr,
        {{"self", "aten.index_fill.int_Scalar(grad, dim, index, 0)"}, {"source", "written(grad, dim, index, source)"}},
        {.lower = lower_index_copy});
  t.add("aten.index_fill.int_Scalar", fake_fill, nullptr, {{"self", "aten.index_fill.int_Scalar(grad, dim, index, 0)"}},
        {.lower = lower_index_fill});
  t.add("aten.index_fill.int_Tensor", fake_fill, nullptr,
        {{"self", "aten.index_fill.int_Scalar(grad, dim, index, 0)"}, {"value", value_of_fill}},
        {.lower = lower_index_fill});
  t.add("aten.index_reduce.default", fake_index_reduce, nullptr, {},
        {.autograd = {.gradient = grad_index_reduce}, .lower = lower_index_reduce});
}

}  // namespace partita
