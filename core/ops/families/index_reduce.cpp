// index_reduce: reduces slices of `source` into slices of `self` along one dimension.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/families/indexing.h"
#include "core/ops/gradients.h"
#include "core/ops/layout.h"

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
  dim_index(c.integer("dim"), static_cast<std::int64_t>(c.tensor("self").dim()));
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
      return a * b;
    case Reduce::Mean:
      return a + b;
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
        to[at + i] = rounded(out.dtype, combined(how, to[at + i], source.as<T>()[from + i]));
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
/// prod, a source that is the only zero of its product gets the product of the other factors.
std::vector<Node*> grad_index_reduce(GradCall& c) {
  GradientSlots slots(c);
  Reduce how = reduction(c.string("reduce"));
  bool include = c.boolean("include_self");
  std::vector<std::pair<std::string, Arg>> names = {
      {"grad", c.grads[0]},      {"self", c.arg("self")},     {"dim", c.arg("dim")},
      {"index", c.arg("index")}, {"source", c.arg("source")}, {"reduce", c.arg("reduce")},
      {"include", include},      {"result", c.results[0]},    {"type", c.tensor("self").dtype}};
  auto build = [&](const char* formula) { return c.build.expression(formula, names); };
  auto bind = [&](const char* name, const char* formula) { names.emplace_back(name, build(formula)); };
  Arg to_self, to_source;
  if (how == Reduce::Prod) {
    if (c.want("self")) {
      bind("nonzero", "masked_fill(self, eq(self, 0), 1)");
      to_self = build("grad * index_reduce(nonzero, dim, index, source, reduce, include_self=include) / nonzero");
    }
    if (c.want("source")) {
      bind("zero", "eq(source, 0)");
      bind("zeros", "index_add(zeros_like(self), dim, index, aten._to_copy.default(zero, dtype=type))");
      bind("single", "bitwise_and(zero, eq(index_select(zeros, dim, index), 1))");
      bind("others", "index_reduce(self, dim, index, masked_fill(source, single, 1), reduce, include_self=include)");
      to_source = build(
          "where(single, index_select(grad * others, dim, index), "
          "index_select(grad * result, dim, index) / masked_fill(source, zero, 1))");
    }
  } else if (how == Reduce::Mean) {
    bind("none", include ? "ones_like(grad)" : "zeros_like(grad)");
    bind("N", "index_add(none, dim, index, ones_like(source))");
    bind("share", "grad / masked_fill(N, eq(N, 0), 1)");
    to_self = build("share");
    if (c.want("source")) to_source = build("index_select(share, dim, index)");
  } else {
    bind("mine", "aten._to_copy.default(eq(self, result), dtype=type)");
    bind("theirs", "aten._to_copy.default(eq(source, index_select(result, dim, index)), dtype=type)");
    bind("share", "grad / index_add(mine, dim, index, theirs)");
    to_self = build("mine * share");
    if (c.want("source")) to_source = build("theirs * index_select(share, dim, index)");
  }
  if (c.want("self")) {
    names.emplace_back("g", to_self);
    slots["self"] = include ? to_self.node() : build("aten.index_fill.int_Scalar(g, dim, index, 0)").node();
  }
  if (c.want("source")) slots["source"] = to_source.node();
  return slots;
}

}  // namespace

void register_index_reduce(OpTable& t) {
  t.add("aten.index_reduce.default",
        {.fake = fake_index_reduce, .eval = eval_index_reduce, .gradient = grad_index_reduce});
}

}  // namespace partita
