// gather, the scatter family, take and put.
#include "core/ops/families/lower_index.h"
#include "core/ops/record/formula.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

/// Places of a tensor as the index names them.
IndexFunction places(const LowerCall& call, const LoweredTensor& index, const LoweredTensor& of) {
  const std::size_t dim = call.dim("dim", of.dim());
  return [dim, reach = Reach(call, index, dim, of.sizes[dim], false)](Body& body, const Index& i) {
    Index at = i;
    at[dim] = reach.position(body, i);
    return at;
  };
}

void lower_gather(LowerCall& call) {
  if (call.in("index").numel().is(0))  // it may have any rank
    return call.give(call.to.constant(call.out().dtype, call.out_sizes(), 0));
  const LoweredTensor self = as_vector(call, call.in("self")), index = as_vector(call, integer_index(call, "index"));
  const IndexFunction place = places(call, index, self);
  call.give(call.to.map(self.dtype, index.sizes,
                        [=](Body& body, const Index& i) { return body.read(self, place(body, i)); }));
}

/// What a scatter puts to the places in `self` that its index names: elements of src, or a number.
Put scattered(LowerCall& call, const LoweredTensor& self) {
  if (call.in("index").numel().is(0)) return {{0}, {}, {}};
  const LoweredTensor index = as_vector(call, integer_index(call, "index"));
  Put put{index.sizes, {}, places(call, index, self)};
  if (call.schema.index_of("src") < 0)
    put.value = number_value(call, "value", self.dtype);
  else
    put.value = [src = as_vector(call, call.in("src"))](Body& body, const Index& i) { return body.read(src, i); };
  return put;
}

void lower_scatter(LowerCall& call) {
  const LoweredTensor self = as_vector(call, call.in("self"));
  call.give(replaced(call, self, scattered(call, self)));
}

void lower_scatter_add(LowerCall& call) {
  const LoweredTensor self = as_vector(call, call.in("self"));
  call.give(combined(call, self, scattered(call, self), {ScalarOp::Add}));
}

void lower_scatter_reduce(LowerCall& call) {
  const LoweredTensor self = as_vector(call, call.in("self"));
  const bool from_self = call.schema.index_of("include_self") < 0 || call.boolean("include_self");
  call.give(combined(call, self, scattered(call, self), combination(call.string("reduce")), from_self));
}

/// All elements of self in a row, and which of them the index names.
struct Row {
  LoweredTensor self;
  Reach reach;

  explicit Row(LowerCall& call)
      : self(call.to.reshape(call.in("self"), {call.in("self").numel()})),
        reach(call, integer_index(call, "index"), 0, self.sizes[0], true) {}
};

void lower_take(LowerCall& call) {
  call.give(call.to.map(call.out().dtype, call.out_sizes(), [row = Row(call)](Body& body, const Index& i) {
    return body.read(row.self, {row.reach.position(body, i)});
  }));
}

void lower_put(LowerCall& call) {
  const Row row(call);
  const LoweredTensor source = call.to.reshape(call.in("source"), row.reach.index.sizes);
  const Put put{source.sizes, [source](Body& body, const Index& i) { return body.read(source, i); },
                [row](Body& body, const Index& i) { return Index{row.reach.position(body, i)}; }};
  call.give(call.boolean("accumulate") ? combined(call, row.self, put, {ScalarOp::Add})
                                       : replaced(call, row.self, put));
}

void check_index(FakeCall& c) {
  const TensorMeta &self = c.tensor("self"), &index = c.tensor("index");
  wrap_dim(c.integer("dim"), self.dim());
  const bool nothing = index.numel().is(0);
  if (!nothing && index.dtype != DType::Int64 && index.dtype != DType::Int32)
    fail(c.schema.base.substr(5) + "(): Expected dtype int32/int64 for index");
  if (!nothing && std::max<std::size_t>(self.dim(), 1) != std::max<std::size_t>(index.dim(), 1))
    fail("Index tensor must have the same number of dimensions as " + std::string("input tensor"));
  if (nothing) return;
  const auto dim = wrap_dim(c.integer("dim"), self.dim());
  // Only known sizes are compared here; symbolic ones are checked when the call is evaluated.
  auto exceeds = [](SymExpr a, SymExpr b) { return a.is_int() && b.is_int() && a.as_int() > b.as_int(); };
  for (std::size_t d = 0; d < index.dim() && d < self.dim(); ++d)
    if (d != dim && exceeds(index.sizes[d], self.sizes[d]))
      fail("Size does not match at dimension " + std::to_string(d) +
           ": expected index to be no larger than self apart from dimension " + std::to_string(dim));
  if (c.schema.index_of("src") < 0) return;
  const TensorMeta& src = c.tensor("src");
  if (src.dtype != self.dtype) fail("scatter(): Expected self.dtype to be equal to src.dtype");
  if (std::max<std::size_t>(src.dim(), 1) != std::max<std::size_t>(index.dim(), 1))
    fail("Index tensor must have the same number of dimensions as src tensor");
  for (std::size_t d = 0; d < index.dim() && d < src.dim(); ++d)
    if (exceeds(index.sizes[d], src.sizes[d])) fail("Expected index to be no larger than src");
}

Meta fake_gather(FakeCall& c) {
  check_index(c);
  return new_like(c.tensor("self"), c.tensor("index").sizes);
}

Meta fake_scatter(FakeCall& c) {
  check_index(c);
  return new_like(c.tensor("self"), c.tensor("self").sizes);
}

/// The gradients of scatter_reduce's self and src: scatter_reduce_backward of PyTorch's FunctionsManual.cpp.
std::string_view scatter_reduce_formula(Combination how) {
  switch (how.op) {
    case ScalarOp::Add:
      if (!how.mean) return "(grad, gather(grad, dim, index))";
      return "n = aten.scatter_add.default(ones_like(grad) if include_self else zeros_like(grad), dim, index, "
             "ones_like(src)); "
             "n = masked_fill(n, eq(n, 0), 1); "
             "(grad / n, gather(grad, dim, index) / gather(n, dim, index))";
    case ScalarOp::Max:
    case ScalarOp::Min:
      // All elements that equal the result get an equal share of the gradient.
      return "self_wins = aten._to_copy.default(eq(self, result), dtype=dtype(self)); "
             "src_wins = aten._to_copy.default(eq(src, gather(result, dim, index)), dtype=dtype(self)); "
             "shared = grad / aten.scatter_add.default(self_wins, dim, index, src_wins); "
             "(self_wins * shared, src_wins * gather(shared, dim, index))";
    default:
      // If exactly one factor is 0, only that factor has a gradient; with two zeros no factor has one.
      return "own = masked_fill(self, eq(self, 0), 1); "
             "others = aten.scatter_reduce.two(own, dim, index, src, 'prod', include_self=include_self); "
             "of_self = grad * others / own; "
             "zero = eq(src, 0); "
             "zeros = aten.scatter_add.default(zeros_like(self), dim, index, aten._to_copy.default(zero, "
             "dtype=dtype(self))); "
             "single = aten.bitwise_and.Tensor(zero, eq(gather(zeros, dim, index), 1)); "
             "rest = aten.scatter_reduce.two(self, dim, index, masked_fill(src, single, 1), 'prod', "
             "include_self=include_self); "
             "at_zero = gather(grad * rest, dim, index); "
             "elsewhere = gather(grad * result, dim, index) / masked_fill(src, zero, 1); "
             "(of_self, aten.where.self(single, at_zero, elsewhere))";
  }
}

std::vector<Node*> grad_scatter_reduce(GradCall& c) {
  std::vector<Node*> slots =
      apply_formulas({{"self, src", scatter_reduce_formula(combination(c.string("reduce")))}}, c);
  Node*& of_self = slots[0];
  if (of_self && !c.boolean("include_self"))
    of_self = c.build.call("aten.scatter.value", {of_self, c.arg("dim"), c.arg("index"), 0});
  return slots;
}

Meta fake_take(FakeCall& c) {
  return new_like(c.tensor("self"), c.tensor("index").sizes);
}

Meta fake_put(FakeCall& c) {
  if (!checked(c, sym_eq(c.tensor("source").numel(), c.tensor("index").numel()), "put"))
    fail("put_(): Expected source and index to have the same number of elements");
  return preserving_self(c);
}

Arg decompose_take_along_dim(DecomposeCall& c) {
  Builder& b = c.build;
  if (!c.has("dim")) {
    Node* flat = b.call("aten.view.default", {c.arg("self"), Arg::list({-1})});
    return b.call("aten.gather.default", {flat, 0, b.call("aten.view.default", {c.arg("indices"), Arg::list({-1})})});
  }
  const TensorMeta &self = c.tensor("self"), &indices = c.tensor("indices");
  if (self.dim() != indices.dim())
    fail("torch.take_along_dim(): input and indices should have the same number of dimensions");
  auto dim = wrap_dim(c.integer("dim"), self.dim());
  if (self.sizes.empty()) fail("torch.take_along_dim(): the input has no dimensions");
  SymList self_sizes = self.sizes, index_sizes = indices.sizes;
  for (std::size_t d = 0; d < self.dim(); ++d) {
    if (d == dim) continue;
    if (self.sizes[d].is(1)) self_sizes[d] = indices.sizes[d];
    if (indices.sizes[d].is(1)) index_sizes[d] = self.sizes[d];
  }
  Node* index = b.call("aten.expand.default", {c.arg("indices"), b.sizes(index_sizes)});
  Node* x = b.call("aten.expand.default", {c.arg("self"), b.sizes(self_sizes)});
  index = b.call("aten.remainder.Scalar", {index, b.size(self.sizes[dim])});  // negative indices count from the end
  return b.call("aten.gather.default", {x, static_cast<std::int64_t>(dim), index});
}

}  // namespace

void register_gather_scatter(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.gather.default", fake_gather, nullptr,
        {{"self",
          "unsupported('gather with sparse_grad') if sparse_grad else "
          "aten.scatter_add.default(aten.new_zeros.default(grad, sizes(self)), dim, index, grad)"}},
        {.lower = lower_gather, .cost = {.recomputable = true}});
  t.add("aten.scatter.src", fake_scatter, nullptr,
        {{"self", "aten.scatter.value(grad, dim, index, 0)"}, {"src", "gather(grad, dim, index)"}},
        {.lower = lower_scatter});
  t.add("aten.scatter.value", fake_scatter, nullptr, {{"self", "aten.scatter.value(grad, dim, index, 0)"}},
        {.lower = lower_scatter});
  t.add("aten.scatter.reduce", fake_scatter, nullptr, {}, {.lower = lower_scatter_reduce});
  t.add("aten.scatter.value_reduce", fake_scatter, nullptr, {}, {.lower = lower_scatter_reduce});
  t.add("aten.scatter_add.default", fake_scatter, nullptr, {{"self", "grad"}, {"src", "gather(grad, dim, index)"}},
        {.lower = lower_scatter_add});
  t.add("aten.scatter_reduce.two", fake_scatter, nullptr, {},
        {.autograd = {.gradient = grad_scatter_reduce}, .lower = lower_scatter_reduce});
  t.add("aten.take.default", fake_take, nullptr, {{"self", "put(zeros_like(self), index, grad, True)"}},
        {.lower = lower_take});
  t.add("aten.put.default", fake_put, nullptr,
        {{"self", "grad if accumulate else aten.put.default(grad, index, zeros_like(source))"},
         {"source", "aten.reshape.default(take(grad, index), sizes(source))"}},
        {.lower = lower_put});
  t.add("aten.take_along_dim.default", {.decompose = decompose_take_along_dim});
}

}  // namespace partita
