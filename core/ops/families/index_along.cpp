// Operators on whole slices along one dimension: index_select, index_add, index_copy, index_fill.
#include <cmath>

#include "core/ops/families/indexing.h"
#include "core/ops/families/lower_index.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/indexing.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

void lower_index_select(LowerCall& call) {
  LoweredTensor self = call.in("self"), index = integer_index(call, "index");
  if (self.dim() == 0) fail_unsupported("index_select of a 0-dim tensor");
  std::size_t dim = call.dim("dim", self.dim());
  Reach reach(call, dim, self.sizes[dim], false);
  call.give(call.to.map(self.dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Index at = i;
    at[dim] = reach.position(body, index, index.dim() == 0 ? Index() : Index{i[dim]});
    return body.read(self, at);
  }));
}

/// Puts value(i) to the slices of self that the index names, or adds it there. Sums of half types are made in float32.
void give_slices(LowerCall& call, ElementFunction value, bool adds, bool wraps) {
  const LoweredTensor index = integer_index(call, "index");
  LoweredTensor self = call.in("self");
  if (self.dim() == 0 || index.dim() == 0) fail_unsupported("slices of a number");
  const std::size_t dim = call.dim("dim", self.dim());
  if (adds) self = call.to.cast(self, opmath_dtype(self.dtype));
  std::vector<Write> writes{whole(self)};
  SymList sizes = self.sizes;
  sizes[dim] = index.sizes[0];
  if (!product(sizes).is(0)) {
    const Reach reach(call, dim, self.sizes[dim], wraps);
    writes.push_back(
        {sizes, [value, dtype = self.dtype](Body& body, const Index& i) { return body.b.cast(value(body, i), dtype); },
         [=](Body& body, const Index& i) {
           Index at = i;
           at[dim] = reach.position(body, index, {i[dim]});
           return at;
         },
         adds, true});
  }
  call.give(call.to.writes(self.dtype, self.sizes, std::move(writes)));
}

LoweredTensor slices(LowerCall& call) {
  const LoweredTensor source = call.in("source");
  if (source.dim() != call.in("self").dim()) fail_unsupported("slices of a number");
  return source;
}

void lower_index_add(LowerCall& call) {
  const LoweredTensor source = slices(call);
  if (source.dtype == DType::Bool || is_complex(source.dtype))
    fail_unsupported("index_add of " + std::string(torch_name(source.dtype)));
  const double alpha = as_double(call.number("alpha"));
  if (!is_floating(source.dtype) && alpha != std::trunc(alpha)) fail_unsupported("a fraction of whole numbers");
  give_slices(
      call,
      [source, alpha](Body& body, const Index& i) {
        const DType dtype = opmath_dtype(source.dtype);
        const Scalar v = body.b.cast(body.read(source, i), dtype);
        return alpha == 1 ? v : body.b.Mul(v, body.b.constant(dtype, alpha));
      },
      true, false);
}

void lower_index_copy(LowerCall& call) {
  give_slices(call, [source = slices(call)](Body& body, const Index& i) { return body.read(source, i); }, false, false);
}

void lower_index_fill(LowerCall& call) {
  if (is_complex(call.out().dtype)) fail_unsupported("index_fill of complex numbers");
  const double value = as_double(call.number("value"));
  if (std::abs(value) > 0x1p53 && is_integral(call.out().dtype)) fail_unsupported("whole numbers beyond doubles");
  give_slices(
      call, [value, dtype = call.out().dtype](Body& body, const Index&) { return body.b.constant(dtype, value); },
      false, true);
}

using namespace kernels;

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
  bool fits = self.dim() == source.dim() || self.dim() == 0 || source.dim() == 0;
  if (self.dim() == 0 || source.dim() == 0) {
    fits = checked(c, sym_eq(source.numel(), product(slices)), "slices");
  } else {
    for (std::size_t d = 0; fits && d < self.dim(); ++d)
      fits = checked(c, sym_eq(source.sizes[d], slices[d]), "slices");
  }
  if (!fits) fail(c.schema.base.substr(5) + "(): source does not have the shape of the indexed part");
  return new_like(self, self.sizes);
}

Meta fake_fill(FakeCall& c) {
  check_vector(c);
  return preserving_self(c);
}

Value eval_index_select(EvalCall& c) {
  Tensor out = allocate(c, fake_index_select);
  Tensor x = load(c.tensor("self"), out.dtype), index = load(c.tensor("index"), DType::Int64);
  DimSplit split = split_at(x.sizes, wrap_dim(c.integer("dim"), x.dim()));
  std::int64_t count = index.numel();
  dispatch_width(x.dtype, [&]<class T>() {
    for (std::int64_t o = 0; o < split.outer; ++o)
      for (std::int64_t k : steps(count, split.inner)) {
        std::int64_t at = index.as<std::int64_t>()[k];
        if (at < 0 || at >= split.length) fail("index out of range in self");
        std::copy_n(x.as<T>() + (o * split.length + at) * split.inner, split.inner,
                    out.as<T>() + (o * count + k) * split.inner);
      }
  });
  return out;
}

Value eval_index_add(EvalCall& c) {
  Tensor out = allocate(c, fake_like_self);
  DType dtype = evaluation_dtype(out.dtype);
  Tensor y = unwrap(load(c.tensor("self"), dtype).clone()), index = load(c.tensor("index"), DType::Int64);
  Tensor source = load(c.tensor("source"), dtype);
  check_source(c, y, index, source);
  Tensor alpha = load(number_tensor(c.number("alpha"), out.dtype), dtype);
  dispatch_compute(dtype, "index_add", [&]<class T>() {
    each_slice(c, y, index, [&](std::int64_t to, std::int64_t from, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        T& sum = y.as<T>()[to + i];
        sum = wrapping_sum(sum, wrapping_product(source.as<T>()[from + i], *alpha.as<T>()));
      }
    });
  });
  return with_elements(out, y);
}

Value eval_index_copy(EvalCall& c) {
  Tensor out = allocate(c, fake_like_self);
  Tensor y = unwrap(c.tensor("self").clone()), index = load(c.tensor("index"), DType::Int64);
  Tensor source = load(c.tensor("source"), y.dtype);
  check_source(c, y, index, source);
  dispatch_width(y.dtype, [&]<class T>() {
    each_slice(c, y, index, [&](std::int64_t to, std::int64_t from, std::int64_t n) {
      std::copy_n(source.as<T>() + from, n, y.as<T>() + to);
    });
  });
  return with_elements(out, y);
}

Value eval_index_fill(EvalCall& c) {
  Tensor out = allocate(c, fake_fill);
  Tensor y = unwrap(c.tensor("self").clone()), index = load(c.tensor("index"), DType::Int64);
  Tensor value = c.is_tensor("value") ? load(c.tensor("value"), y.dtype) : number_tensor(c.number("value"), y.dtype);
  if (value.numel() != 1) fail("index_fill_ only supports a 0-dimensional value tensor");
  dispatch_width(y.dtype, [&]<class T>() {
    each_slice(
        c, y, index,
        [&](std::int64_t to, std::int64_t, std::int64_t n) { std::fill_n(y.as<T>() + to, n, *value.as<T>()); }, true);
  });
  return with_elements(out, y);
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

}  // namespace

void register_index_along(OpTable& t) {
  t.default_family = Family::Index;
  t.add_formula_functions({{"written", written}});
  t.add("aten.index_select.default", fake_index_select, eval_index_select,
        {{"self", "aten.index_add.default(zeros_of(self, grad), dim, index, grad)"}}, {.lower = lower_index_select});
  t.add("aten.index_add.default", fake_like_self, eval_index_add,
        {{"self", "grad"}, {"source", "maybe_multiply(written(grad, dim, index, source), alpha)"}},
        {.lower = lower_index_add});
  t.add("aten.index_copy.default", fake_like_self, eval_index_copy,
        {{"self", "aten.index_fill.int_Scalar(grad, dim, index, 0)"}, {"source", "written(grad, dim, index, source)"}},
        {.lower = lower_index_copy});
  t.add("aten.index_fill.int_Scalar", fake_fill, eval_index_fill,
        {{"self", "aten.index_fill.int_Scalar(grad, dim, index, 0)"}}, {.lower = lower_index_fill});
  t.add("aten.index_fill.int_Tensor", fake_fill, eval_index_fill,
        {{"self", "aten.index_fill.int_Scalar(grad, dim, index, 0)"}, {"value", value_of_fill}});
}

}  // namespace partita
