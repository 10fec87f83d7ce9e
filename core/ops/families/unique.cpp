// Distinct elements and slices, membership and counts: isin, unique, bincount, nonzero_static.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "core/ops/families/indexing.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {

namespace {

using namespace kernels;

TensorMeta of_type(TensorMeta t, DType dtype) {
  t.dtype = dtype;
  return t;
}

Operand operand(const FakeCall& c, const char* name) {
  return c.is_tensor(name) ? Operand::of(c.tensor(name)) : Operand{c.dtype_of_number(name), Operand::Rank::Number};
}

template <bool element_is_number, bool test_is_number>
Meta fake_isin(FakeCall& c) {
  const char* name = element_is_number ? "element" : "elements";
  const TensorMeta& like = c.tensor(element_is_number ? "test_elements" : name);
  return of_type(new_like(like, element_is_number ? SymList{} : like.sizes), DType::Bool);
}

/// Elements are compared in the common dtype. NaN is never found.
template <bool element_is_number, bool test_is_number>
Value eval_isin(EvalCall& c) {
  const char *element = element_is_number ? "element" : "elements",
             *test = test_is_number ? "test_element" : "test_elements";
  Tensor out = allocate(c, fake_isin<element_is_number, test_is_number>);
  CallOfValues metas(c);
  DType dtype =
      evaluation_dtype(result_type(std::vector<Operand>{operand(metas.call, element), operand(metas.call, test)}));
  auto values = [&](const char* name) {
    if (c.is_tensor(name)) return load(c.tensor(name), dtype);
    return number_tensor(c.number(name), dtype);
  };
  Tensor x = values(element), of = values(test);
  bool invert = c.boolean("invert");
  dispatch_ordered(dtype, "isin", [&]<class T>() {
    std::unordered_set<T> set(of.as<T>(), of.as<T>() + of.numel());
    for (std::int64_t i : steps(x.numel())) out.as<StoredBool>()[i] = set.contains(x.as<T>()[i]) != invert;
  });
  return out;
}

/// Distinct slices along a dimension (or elements of the flattened tensor). first: position of a slice's first
/// occurrence; counts: number of occurrences; inverse: for each slice of the input, its index among the distinct ones.
struct Distinct {
  std::vector<std::int64_t> first, inverse, counts;
};

/// With `sorted`, distinct slices in ascending order, NaNs last and each counted separately. Otherwise the runs of
/// equal neighbours.
template <class T>
Distinct distinct(const T* x, const DimSplit& s, bool sorted) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(s.length));
  std::iota(order.begin(), order.end(), 0);
  auto at = [&](std::int64_t k, std::int64_t o, std::int64_t i) { return x[(o * s.length + k) * s.inner + i]; };
  auto each = [&](std::int64_t a, std::int64_t b, auto decide) {
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t i : steps(s.inner, s.length))
        if (int d = decide(at(a, o, i), at(b, o, i)); d != 0) return d;
    return 0;
  };
  auto less = [&](std::int64_t a, std::int64_t b) {
    return each(a, b, [](T l, T r) {
             return l < r || (l == l && r != r) ? -1 : r < l || (r == r && l != l) ? 1 : 0;
           }) < 0;
  };
  auto differ = [&](std::int64_t a, std::int64_t b) {
    return each(a, b, [](T l, T r) { return l == r ? 0 : 1; }) != 0;
  };
  if (sorted) std::stable_sort(order.begin(), order.end(), less);
  Distinct out;
  out.inverse.resize(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || differ(order[k - 1], order[k])) {
      out.first.push_back(order[k]);
      out.counts.push_back(0);
    }
    ++out.counts.back();
    out.inverse[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(out.first.size()) - 1;
  }
  return out;
}

std::optional<std::int64_t> dim_of(const FakeCall& c) {
  if (c.schema.index_of("dim") < 0 || !c.has("dim")) return std::nullopt;
  return wrap_dim(c.integer("dim"), c.tensor("self").dim());
}

/// Results: the distinct slices; for each slice of the input its index among them; their counts.
Meta fake_unique(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  std::optional<std::int64_t> dim = dim_of(c);
  bool one_dim = c.schema.index_of("dim") >= 0 && dim.has_value();
  SymExpr count = c.shapes.new_unbacked();
  SymList sizes = one_dim ? self.sizes : SymList{count};
  if (one_dim && !sizes.empty()) sizes[static_cast<std::size_t>(*dim)] = count;
  // FakeTensor takes the sizes after `dim` with Python's slice [dim + 1:], which for dim = -1 gives all sizes. It makes
  // a negative `dim` positive for unique_dim only.
  const bool consecutive = c.schema.index_of("sorted") < 0;
  if (consecutive && one_dim && !concrete(self.sizes) && c.integer("dim") == -1)
    sizes.insert(sizes.end(), self.sizes.begin(), self.sizes.end());
  SymList inverse =
      one_dim ? SymList{sizes.empty() ? SymExpr(1) : self.sizes[static_cast<std::size_t>(*dim)]} : self.sizes;
  // PyTorch's kernels for whole slices always return all three results.
  bool all = one_dim;
  return MetaTuple{
      {new_like(self, sizes),
       of_type(new_like(self, all || c.boolean("return_inverse") ? inverse : SymList{0}), DType::Int64),
       of_type(new_like(self, all || c.boolean("return_counts") ? SymList{count} : SymList{0}), DType::Int64)}};
}

Value eval_unique(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  CallOfValues metas(c);
  std::optional<std::int64_t> dim = dim_of(metas.call);
  bool consecutive = c.schema.base.ends_with("_consecutive");
  DType dtype = evaluation_dtype(self.dtype);
  Tensor x = load(self, dtype);
  DimSplit split{1, x.numel(), 1};
  if (dim && !x.sizes.empty()) split = split_at(x.sizes, *dim);
  Distinct d;
  dispatch_ordered(dtype, "unique", [&]<class T>() { d = distinct(x.as<T>(), split, !consecutive); });
  auto count = static_cast<std::int64_t>(d.first.size());
  Sizes sizes = dim ? self.sizes : Sizes{count};
  if (dim && !sizes.empty()) sizes[static_cast<std::size_t>(*dim)] = count;
  Tensor out = empty(self.dtype, sizes), from = load(self, self.dtype);
  dispatch_width(self.dtype, [&]<class T>() {
    for (std::int64_t o = 0; o < split.outer; ++o)
      for (std::int64_t k = 0; k < count; ++k)
        std::copy_n(from.as<T>() + (o * split.length + d.first[static_cast<std::size_t>(k)]) * split.inner, split.inner,
                    out.as<T>() + (o * count + k) * split.inner);
  });
  auto numbers = [](const std::vector<std::int64_t>& values, Sizes of) {
    Tensor t = empty(DType::Int64, std::move(of));
    std::copy(values.begin(), values.end(), t.as<std::int64_t>());
    return t;
  };
  bool all = dim.has_value();
  Tensor none = empty(DType::Int64, {0});
  Tensor inverse =
      all || c.boolean("return_inverse") ? numbers(d.inverse, all ? Sizes{split.length} : self.sizes) : none;
  Tensor counts = all || c.boolean("return_counts") ? numbers(d.counts, {count}) : none;
  return ValueList{out, inverse, counts};
}

/// The counts of 0, 1, ... up to the largest element (at least `minlength` counts), or sums of weights.
Meta fake_bincount(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  if (self.dim() != 1) fail("bincount only supports 1-d non-negative integral inputs.");
  TensorMeta out = new_like(self, {c.shapes.new_unbacked()});
  out.dtype = DType::Int64;
  if (c.has("weights")) out.dtype = c.tensor("weights").dtype == DType::Float32 ? DType::Float32 : DType::Float64;
  return out;
}

Value eval_bincount(EvalCall& c) {
  Tensor x = load(c.tensor("self"), DType::Int64);
  std::int64_t length = c.integer("minlength");
  if (length < 0) fail("minlength should be >= 0");
  for (std::int64_t i : steps(x.numel())) {
    if (x.as<std::int64_t>()[i] < 0) fail("bincount only supports 1-d non-negative integral inputs.");
    length = std::max(length, x.as<std::int64_t>()[i] + 1);
  }
  DType dtype = DType::Int64;
  if (c.has("weights")) {
    dtype = c.tensor("weights").dtype == DType::Float32 ? DType::Float32 : DType::Float64;
    if (c.tensor("weights").numel() != x.numel()) fail("weights should be 1-d and have the same length as input");
  }
  Tensor out = zeros(dtype, {length}), weights;
  if (c.has("weights")) weights = load(c.tensor("weights"), dtype);
  dispatch_ordered(dtype, "bincount", [&]<class T>() {
    for (std::int64_t i : steps(x.numel()))
      out.as<T>()[x.as<std::int64_t>()[i]] += weights.storage ? weights.as<T>()[i] : T(1);
  });
  return out;
}

Meta fake_nonzero_static(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  SymExpr size = c.sym("size");
  if (!checked(c, sym_le(0, size), "nonzero_static")) fail("nonzero_static: 'size' must be an non-negative integer");
  return of_type(new_like(self, {size, static_cast<std::int64_t>(self.dim())}), DType::Int64);
}

Value eval_nonzero_static(EvalCall& c) {
  Tensor out = allocate(c, fake_nonzero_static), rows = nonzero(c.tensor("self"));
  std::fill_n(out.as<std::int64_t>(), out.numel(), c.integer("fill_value"));
  std::copy_n(rows.as<std::int64_t>(), std::min(rows.numel(), out.numel()), out.as<std::int64_t>());
  return out;
}

}  // namespace

void register_unique(OpTable& t) {
  t.default_family = Family::Index;
  auto add = [&](const char* name, Meta (*fake)(FakeCall&), Value (*eval)(EvalCall&)) {
    t.add(name, fake, eval, {}, {.autograd = {.not_differentiable = true}});
  };
  add("aten.isin.Tensor_Tensor", fake_isin<false, false>, eval_isin<false, false>);
  add("aten.isin.Tensor_Scalar", fake_isin<false, true>, eval_isin<false, true>);
  add("aten.isin.Scalar_Tensor", fake_isin<true, false>, eval_isin<true, false>);
  // These have gradients, for which PyTorch has no formulas.
  for (const char* name : {"aten._unique2.default", "aten.unique_consecutive.default", "aten.unique_dim.default",
                           "aten.unique_dim_consecutive.default"})
    t.add(name, fake_unique, eval_unique);
  t.add("aten.bincount.default", fake_bincount, eval_bincount);
  add("aten.nonzero_static.default", fake_nonzero_static, eval_nonzero_static);
}

}  // namespace partita
