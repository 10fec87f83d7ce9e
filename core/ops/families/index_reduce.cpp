// index_reduce: reduces slices of `source` into slices of `self` along one dimension.
#include <algorithm>
#include <limits>

#include "core/ops/families/indexing.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/formula.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

enum class Reduce { Prod, Mean, Amax, Amin };

Reduce reduction(const std::string& name) {
  if (name == "prod") return Reduce::Prod;
  if (name == "mean") return Reduce::Mean;
  if (name == "amax") return Reduce::Amax;
  if (name == "amin") return Reduce::Amin;
  fail("index_reduce(): reduce argument must be either prod, mean, amax or amin, got " + name);
}

Meta fake_index_reduce(FakeCall& c) {
  reduction(c.string("reduce"));
  wrap_dim(c.integer("dim"), c.tensor("self").dim());
  return new_like(c.tensor("self"), c.tensor("self").sizes);
}

/// The value from which the reduction starts when self's slice is not included.
template <class T>
T identity(Reduce how) {
  using Limits = std::numeric_limits<T>;
  switch (how) {
    case Reduce::Prod:
      return T(1);
    case Reduce::Mean:
      return T(0);
    case Reduce::Amax:
      return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case Reduce::Amin:
      return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  fail("index_reduce(): unknown reduction");
}

template <class T>
T combined(Reduce how, T a, T b) {
  switch (how) {
    case Reduce::Prod:
      return wrapping_product(a, b);
    case Reduce::Mean:
      return wrapping_sum(a, b);
    case Reduce::Amax:
      return a != a ? a : b != b ? b : std::max(a, b);
    case Reduce::Amin:
      return a != a ? a : b != b ? b : std::min(a, b);
  }
  fail("index_reduce(): unknown reduction");
}

/// Half types round at every step, since eager PyTorch adds and multiplies slice by slice. Means of integers are
/// floored.
Value eval_index_reduce(EvalCall& c) {
  Tensor out = allocate(c, fake_index_reduce);
  DType dtype = evaluation_dtype(out.dtype);
  Reduce how = reduction(c.string("reduce"));
  Tensor y = unwrap(load(c.tensor("self"), dtype).clone()), index = load(c.tensor("index"), DType::Int64);
  Tensor source = load(c.tensor("source"), dtype);
  check_source(c, y, index, source);
  bool include = c.boolean("include_self");
  std::vector<std::int64_t> counts(static_cast<std::size_t>(y.numel()), include ? 1 : 0);
  dispatch_ordered(dtype, "index_reduce", [&]<class T>() {
    T* to = y.as<T>();
    if (!include)
      each_slice(c, y, index,
                 [&](std::int64_t at, std::int64_t, std::int64_t n) { std::fill_n(to + at, n, identity<T>(how)); });
    each_slice(c, y, index, [&](std::int64_t at, std::int64_t from, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        to[at + i] = combined(how, to[at + i], source.as<T>()[from + i]);
        ++counts[static_cast<std::size_t>(at + i)];
      }
    });
    if (how != Reduce::Mean) return;
    for (std::int64_t i : steps(y.numel())) {
      auto count = static_cast<T>(std::max<std::int64_t>(1, counts[static_cast<std::size_t>(i)]));
      if constexpr (std::is_integral_v<T>)
        to[i] = to[i] / count - (to[i] % count < 0);
      else
        to[i] /= count;
    }
  });
  out.copy_from(y);
  return out;
}

/// As index_reduce_backward of FunctionsManual.cpp. Elements that equal the extreme share the gradient equally. For
/// prod, a source that is the only zero of its product gets the product of the other factors. Gives the gradients of
/// self and source.
std::string_view index_reduce_formula(Reduce how) {
  if (how == Reduce::Prod)
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
  if (how == Reduce::Mean)
    return "n = index_add(ones_like(grad) if include_self else zeros_like(grad), dim, index, ones_like(source)); "
           "share = grad / masked_fill(n, eq(n, 0), 1); "
           "(share, index_select(share, dim, index))";
  return "mine = aten._to_copy.default(eq(self, result), dtype=dtype(self)); "
         "theirs = aten._to_copy.default(eq(source, index_select(result, dim, index)), dtype=dtype(self)); "
         "share = grad / index_add(mine, dim, index, theirs); "
         "(mine * share, theirs * index_select(share, dim, index))";
}

std::vector<Node*> grad_index_reduce(GradCall& c) {
  std::vector<Node*> slots = apply_formulas({{"self, source", index_reduce_formula(reduction(c.string("reduce")))}}, c);
  Node*& of_self = slots[0];
  if (of_self && !c.boolean("include_self"))
    of_self = c.build.call("aten.index_fill.int_Scalar", {of_self, c.arg("dim"), c.arg("index"), 0});
  return slots;
}

}  // namespace

void register_index_reduce(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.index_reduce.default", fake_index_reduce, eval_index_reduce, {},
        {.autograd = {.gradient = grad_index_reduce}});
}

}  // namespace partita
