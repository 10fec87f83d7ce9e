// gather, the scatter family, take and put.
#include <cmath>
#include <limits>

#include "core/ops/families/indexing.h"
#include "core/ops/families/lower_index.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/indexing.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/formula.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

enum class Put : std::uint8_t { Replace, Add, AddToZero };

/// `base` with the values put to the places that the index names. Sums of half types are made in float32 and rounded
/// once, as in PyTorch's kernel.
LoweredTensor scattered(LowerCall& call, LoweredTensor base, ElementFunction value, Put put) {
  const LoweredTensor index = integer_index(call, "index");
  const DType dtype = put == Put::Replace ? base.dtype : opmath_dtype(base.dtype);
  base = call.to.cast(base, dtype);
  std::vector<Write> writes{whole(base)};
  if (!index.numel().is(0)) {
    if (index.dim() == 0 || index.dim() != base.dim()) fail_unsupported("scatter with a 0-dim tensor");
    std::size_t dim = call.dim("dim", base.dim());
    Reach reach(call, dim, base.sizes[dim], false);
    const IndexFunction place = [=](Body& body, const Index& i) {
      Index at = i;
      at[dim] = reach.position(body, index, i);
      return at;
    };
    if (put == Put::AddToZero)
      writes.push_back(
          {index.sizes, [dtype](Body& body, const Index&) { return body.b.constant(dtype, 0); }, place, false, true});
    writes.push_back({index.sizes,
                      [value, dtype](Body& body, const Index& i) { return body.b.cast(value(body, i), dtype); }, place,
                      put != Put::Replace, true});
  }
  return call.to.writes(dtype, base.sizes, std::move(writes));
}

ElementFunction source_value(LowerCall& call) {
  LoweredTensor src = call.in("src");
  return [src, dtype = call.out().dtype](Body& body, const Index& i) { return body.b.cast(body.read(src, i), dtype); };
}

void lower_gather(LowerCall& call) {
  LoweredTensor self = call.in("self"), index = integer_index(call, "index");
  if (index.numel().is(0)) {  // an empty index may have any rank
    call.give(call.to.constant(self.dtype, index.sizes, 0));
    return;
  }
  if (index.dim() == 0 || index.dim() != self.dim()) fail_unsupported("gather with a 0-dim tensor");
  std::size_t dim = call.dim("dim", self.dim());
  Reach reach(call, dim, self.sizes[dim], false);
  call.give(call.to.map(self.dtype, index.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    at[dim] = reach.position(body, index, i);
    return body.read(self, at);
  }));
}

void lower_scatter(LowerCall& call) {
  if (call.schema.index_of("src") >= 0)
    return call.give(scattered(call, call.in("self"), source_value(call), Put::Replace));
  double value = as_double(call.number("value"));
  call.give(scattered(
      call, call.in("self"),
      [value, dtype = call.out().dtype](Body& body, const Index&) { return body.b.constant(dtype, value); },
      Put::Replace));
}

void lower_scatter_add(LowerCall& call) {
  call.give(scattered(call, call.in("self"), source_value(call), Put::Add));
}

/// Sums and means; others stay calls.
void lower_scatter_reduce(LowerCall& call) {
  const std::string how = call.string("reduce");
  const LoweredTensor self = call.in("self");
  const bool mean = how == "mean", from_self = call.boolean("include_self");
  if (how != "sum" && !mean) fail_unsupported("a scatter with reduction '" + how + "'");
  if (mean && (!is_floating(self.dtype) || itemsize(self.dtype) < 4))
    fail_unsupported("scattered means of " + std::string(torch_name(self.dtype)));
  const LoweredTensor sums = scattered(call, self, source_value(call), from_self ? Put::Add : Put::AddToZero);
  if (!mean) return call.give(sums);
  const DType dtype = sums.dtype;
  const LoweredTensor counts = scattered(
      call, call.to.constant(dtype, self.sizes, from_self ? 1 : 0),
      [dtype](Body& body, const Index&) { return body.b.constant(dtype, 1); }, Put::Add);
  call.give(pointwise(call.to, dtype, dtype, {sums, counts}, [](ScalarBuilder& b, auto v) {
    return b.where(b.Eq(v[1], b.constant(b.dtype(v[1]), 0)), v[0], b.Div(v[0], v[1]));
  }));
}

using namespace kernels;

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

/// Calls f(position in index, position in self, offset in `other`) for each element of index. Positions are row-major;
/// `other` has index's rank and the strides `other_strides`.
template <class F>
void each_indexed(const Sizes& self_sizes, const Tensor& index, std::int64_t dim, const Sizes& other_strides, F f) {
  Sizes self_strides = row_major_strides(self_sizes);
  std::size_t rank = index.sizes.size();
  if (index.numel() == 0) return;
  for (std::size_t d = 0; d < rank && d < self_sizes.size(); ++d)
    if (static_cast<std::int64_t>(d) != dim && index.sizes[d] > self_sizes[d])
      fail("Size does not match at dimension " + std::to_string(d) +
           ": expected index to be no larger than self apart from dimension " + std::to_string(dim));
  const auto* entries = index.as<std::int64_t>();
  Sizes at(rank, 0);
  std::int64_t size = self_sizes.empty() ? 1 : self_sizes[static_cast<std::size_t>(dim)];
  for (std::int64_t i : steps(index.numel())) {
    std::int64_t target = 0, other = 0;
    if (entries[i] < 0 || entries[i] >= size)
      fail("index " + std::to_string(entries[i]) + " is out of bounds for dimension " + std::to_string(dim) +
           " with size " + std::to_string(size));
    for (std::size_t d = 0; d < rank; ++d) {
      std::int64_t k = static_cast<std::int64_t>(d) == dim ? entries[i] : at[d];
      if (d < self_strides.size()) target += k * self_strides[d];
      other += at[d] * other_strides[d];
    }
    // A 0-dim index selects from a 1-d self.
    if (rank == 0 && !self_strides.empty()) target = entries[i] * self_strides[0];
    f(i, target, other);
    for (std::size_t d = rank; d-- > 0;) {
      if (++at[d] < index.sizes[d]) break;
      at[d] = 0;
    }
  }
}

Value eval_gather(EvalCall& c) {
  Tensor out = allocate(c, fake_gather);
  const Tensor& self = c.tensor("self");
  Tensor x = load(self, self.dtype), index = load(c.tensor("index"), DType::Int64);
  std::int64_t dim = wrap_dim(c.integer("dim"), x.dim());
  dispatch_width(self.dtype, [&]<class T>() {
    each_indexed(x.sizes, index, dim, index.strides,
                 [&](std::int64_t i, std::int64_t at, std::int64_t) { out.as<T>()[i] = x.as<T>()[at]; });
  });
  return out;
}

void check_source(const Tensor& index, const Tensor& source) {
  if (index.numel() == 0) return;
  if (source.sizes.size() != index.sizes.size())
    fail("Index tensor must have the same number of dimensions as src tensor");
  for (std::size_t d = 0; d < index.sizes.size(); ++d)
    if (index.sizes[d] > source.sizes[d]) fail("Expected index to be no larger than src");
}

enum class Combine { Replace, Add, Multiply, Mean, Max, Min };

template <class T>
T combine(Combine how, T a, T b) {
  if constexpr (std::is_arithmetic_v<T>) {
    if constexpr (std::is_floating_point_v<T>)
      if ((how == Combine::Max || how == Combine::Min) && (std::isnan(a) || std::isnan(b))) return a + b;
    if (how == Combine::Max) return std::max(a, b);
    if (how == Combine::Min) return std::min(a, b);
  }
  switch (how) {
    case Combine::Replace:
      return b;
    case Combine::Multiply:
      return wrapping_product(a, b);
    default:
      return wrapping_sum(a, b);
  }
}

/// The value from which a reduction without self's elements starts.
template <class T>
T identity(Combine how) {
  if constexpr (std::is_arithmetic_v<T>) {
    constexpr bool infinite = std::numeric_limits<T>::has_infinity;
    T lowest = infinite ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
    T highest = infinite ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    if (how == Combine::Max) return lowest;
    if (how == Combine::Min) return highest;
  }
  return how == Combine::Multiply ? T(1) : T(0);
}

/// out[index] = combine(out[index], source), element by element. `source_strides` are 0 when the source is one number.
Tensor scatter(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
               const Sizes& source_strides, Combine how, bool include_self) {
  DType dtype = how == Combine::Replace ? self.dtype : evaluation_dtype(self.dtype);
  Tensor y = unwrap(load(self, dtype).clone());
  dim = wrap_dim(dim, self.dim());
  if (how == Combine::Replace) {
    dispatch_width(dtype, [&]<class T>() {
      each_indexed(self.sizes, index, dim, source_strides,
                   [&](std::int64_t, std::int64_t at, std::int64_t from) { y.as<T>()[at] = source.as<T>()[from]; });
    });
    return y;
  }
  dispatch_compute(dtype, "scatter_reduce", [&]<class T>() {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(y.numel()), include_self ? 1 : 0);
    if (!include_self)
      each_indexed(self.sizes, index, dim, source_strides,
                   [&](std::int64_t, std::int64_t at, std::int64_t) { y.as<T>()[at] = identity<T>(how); });
    each_indexed(self.sizes, index, dim, source_strides, [&](std::int64_t, std::int64_t at, std::int64_t from) {
      y.as<T>()[at] = combine(how, y.as<T>()[at], source.as<T>()[from]);
      ++counts[static_cast<std::size_t>(at)];
    });
    if (how != Combine::Mean) return;
    for (std::int64_t i : steps(y.numel())) {
      std::int64_t n = counts[static_cast<std::size_t>(i)];
      if (n < 2) continue;
      if constexpr (std::is_same_v<T, std::int64_t>) {
        std::int64_t q = y.as<T>()[i] / n;
        y.as<T>()[i] = y.as<T>()[i] % n != 0 && y.as<T>()[i] < 0 ? q - 1 : q;
      } else {
        y.as<T>()[i] /= T(static_cast<double>(n));
      }
    }
  });
  return y;
}

Value store(EvalCall& c, const Tensor& y) {
  Tensor out = allocate(c, fake_scatter);
  return with_elements(out, y);
}

Combine combine_of(const std::string& name) {
  if (name == "add" || name == "sum") return Combine::Add;
  if (name == "multiply" || name == "prod") return Combine::Multiply;
  if (name == "mean") return Combine::Mean;
  if (name == "amax") return Combine::Max;
  if (name == "amin") return Combine::Min;
  fail("reduce argument must be either sum, prod, mean, amax or amin, got " + name + ".");
}

Value scatter_tensor(EvalCall& c, Combine how, bool include_self) {
  const Tensor& self = c.tensor("self");
  Tensor index = load(c.tensor("index"), DType::Int64);
  DType dtype = how == Combine::Replace ? self.dtype : evaluation_dtype(self.dtype);
  Tensor source = load(c.tensor("src"), dtype);
  check_source(index, source);
  return store(c, scatter(self, c.integer("dim"), index, source, source.strides, how, include_self));
}

Value scatter_number(EvalCall& c, Combine how) {
  const Tensor& self = c.tensor("self");
  Tensor index = load(c.tensor("index"), DType::Int64);
  DType dtype = how == Combine::Replace ? self.dtype : evaluation_dtype(self.dtype);
  Number value = c.number("value");
  const auto* z = std::get_if<std::complex<double>>(&value);
  Tensor source = empty(z                                             ? DType::Complex128
                        : std::holds_alternative<std::int64_t>(value) ? DType::Int64
                                                                      : DType::Float64,
                        {});
  if (z)
    *source.as<std::complex<double>>() = *z;
  else if (source.dtype == DType::Int64)
    *source.as<std::int64_t>() = as_int(value);
  else
    *source.as<double>() = as_double(value);
  return store(c, scatter(self, c.integer("dim"), index, load(source, dtype), Sizes(index.sizes.size(), 0), how, true));
}

Value eval_scatter_src(EvalCall& c) {
  return scatter_tensor(c, Combine::Replace, true);
}
Value eval_scatter_add(EvalCall& c) {
  return scatter_tensor(c, Combine::Add, true);
}
Value eval_scatter_value(EvalCall& c) {
  return scatter_number(c, Combine::Replace);
}
Value eval_scatter_reduce_old(EvalCall& c) {
  return scatter_tensor(c, combine_of(c.string("reduce")), true);
}
Value eval_scatter_value_reduce(EvalCall& c) {
  return scatter_number(c, combine_of(c.string("reduce")));
}
Value eval_scatter_reduce(EvalCall& c) {
  return scatter_tensor(c, combine_of(c.string("reduce")), c.boolean("include_self"));
}

/// scatter_reduce_backward of PyTorch's FunctionsManual.cpp.
/// The gradients of scatter_reduce's self and src.
std::string_view scatter_reduce_formula(Combine how) {
  switch (how) {
    case Combine::Add:
      return "(grad, gather(grad, dim, index))";
    case Combine::Mean:
      return "n = aten.scatter_add.default(ones_like(grad) if include_self else zeros_like(grad), dim, index, "
             "ones_like(src)); "
             "n = masked_fill(n, eq(n, 0), 1); "
             "(grad / n, gather(grad, dim, index) / gather(n, dim, index))";
    case Combine::Max:
    case Combine::Min:
      // All elements that equal the result get an equal share of the gradient.
      return "self_wins = aten._to_copy.default(eq(self, result), dtype=dtype(self)); "
             "src_wins = aten._to_copy.default(eq(src, gather(result, dim, index)), dtype=dtype(self)); "
             "shared = grad / aten.scatter_add.default(self_wins, dim, index, src_wins); "
             "(self_wins * shared, src_wins * gather(shared, dim, index))";
    case Combine::Multiply:
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
    case Combine::Replace:
      break;
  }
  fail("scatter_reduce: there is no such reduction");
}

std::vector<Node*> grad_scatter_reduce(GradCall& c) {
  std::vector<Node*> slots = apply_formulas({{"self, src", scatter_reduce_formula(combine_of(c.string("reduce")))}}, c);
  Node*& of_self = slots[0];
  if (of_self && !c.boolean("include_self"))
    of_self = c.build.call("aten.scatter.value", {of_self, c.arg("dim"), c.arg("index"), 0});
  return slots;
}

Meta fake_take(FakeCall& c) {
  return new_like(c.tensor("self"), c.tensor("index").sizes);
}
Value eval_take(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  Tensor x = load(self, self.dtype), index = load(c.tensor("index"), DType::Int64), y = empty(x.dtype, index.sizes);
  dispatch_width(x.dtype, [&]<class T>() {
    for (std::int64_t i : steps(index.numel()))
      y.as<T>()[i] = x.as<T>()[checked_index(index.as<std::int64_t>()[i], x.numel(), 0)];
  });
  return y;
}

Value eval_put(EvalCall& c) {
  Tensor out = allocate(c, preserving_self);
  bool accumulate = c.boolean("accumulate");
  DType dtype = accumulate ? evaluation_dtype(out.dtype) : out.dtype;
  Tensor y = unwrap(load(c.tensor("self"), dtype).clone()), index = load(c.tensor("index"), DType::Int64);
  Tensor source = load(c.tensor("source"), dtype);
  if (source.numel() != index.numel()) fail("put_(): Expected source and index to have the same number of elements");
  auto target = [&](std::int64_t i) { return checked_index(index.as<std::int64_t>()[i], y.numel(), 0); };
  if (accumulate)
    dispatch_compute(dtype, "put", [&]<class T>() {
      for (std::int64_t i : steps(index.numel())) y.as<T>()[target(i)] += source.as<T>()[i];
    });
  else
    dispatch_width(dtype, [&]<class T>() {
      for (std::int64_t i : steps(index.numel())) y.as<T>()[target(i)] = source.as<T>()[i];
    });
  return with_elements(out, y);
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
  t.add("aten.gather.default", fake_gather, eval_gather,
        {{"self",
          "unsupported('gather with sparse_grad') if sparse_grad else "
          "aten.scatter_add.default(aten.new_zeros.default(grad, sizes(self)), dim, index, grad)"}},
        {.lower = lower_gather, .cost = {.recomputable = true}});
  t.add("aten.scatter.src", fake_scatter, eval_scatter_src,
        {{"self", "aten.scatter.value(grad, dim, index, 0)"}, {"src", "gather(grad, dim, index)"}},
        {.lower = lower_scatter});
  t.add("aten.scatter.value", fake_scatter, eval_scatter_value, {{"self", "aten.scatter.value(grad, dim, index, 0)"}},
        {.lower = lower_scatter});
  t.add("aten.scatter.reduce", fake_scatter, eval_scatter_reduce_old);
  t.add("aten.scatter.value_reduce", fake_scatter, eval_scatter_value_reduce);
  t.add("aten.scatter_add.default", fake_scatter, eval_scatter_add,
        {{"self", "grad"}, {"src", "gather(grad, dim, index)"}}, {.lower = lower_scatter_add});
  t.add("aten.scatter_reduce.two", fake_scatter, eval_scatter_reduce, {},
        {.autograd = {.gradient = grad_scatter_reduce}, .lower = lower_scatter_reduce});
  t.add("aten.take.default", fake_take, eval_take, {{"self", "put(zeros_like(self), index, grad, True)"}});
  t.add("aten.put.default", preserving_self, eval_put,
        {{"self", "grad if accumulate else aten.put.default(grad, index, zeros_like(source))"},
         {"source", "aten.reshape.default(take(grad, index), sizes(source))"}});
  t.add("aten.take_along_dim.default", {.decompose = decompose_take_along_dim});
}

}  // namespace partita
