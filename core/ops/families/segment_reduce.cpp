// Reductions of consecutive segments along one dimension. Segments are given by their lengths or by their offsets.
#include <cmath>
#include <limits>

#include "core/ops/families/reduce_parts.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

enum class Reduce { Sum, Mean, Max, Min, Prod };

Reduce reduction(const std::string& name) {
  if (name == "sum") return Reduce::Sum;
  if (name == "mean") return Reduce::Mean;
  if (name == "max") return Reduce::Max;
  if (name == "min") return Reduce::Min;
  if (name == "prod") return Reduce::Prod;
  fail("segment_reduce: unsupported reduction " + name);
}

/// There is one more offset than there are segments.
Meta fake_segment_reduce(FakeCall& c) {
  const TensorMeta& data = c.tensor("data");
  reduction(c.string("reduce"));
  if (c.schema.index_of("indices") >= 0 && c.has("indices")) fail_unsupported("segment_reduce with indices");
  bool by_lengths = c.has("lengths");
  if (!by_lengths && !c.has("offsets")) fail("segment_reduce: either lengths or offsets must be given");
  if (data.dim() == 0) fail("segment_reduce: data has no dimensions");
  auto axis = wrap_dim(c.integer("axis"), data.dim());
  const TensorMeta& bounds = c.tensor(by_lengths ? "lengths" : "offsets");
  if (bounds.dim() != axis + 1) fail("segment_reduce: the segments' dimensions must be those of data up to the axis");
  for (std::size_t d = 0; d < axis; ++d)
    if (!checked(c, sym_eq(bounds.sizes[d], data.sizes[d]), "segment_reduce"))
      fail("segment_reduce: the segments' dimensions must be those of data up to the axis");
  if (!by_lengths && bounds.sizes.back().is(0)) fail("segment_reduce: offsets must have at least one element");
  SymList sizes = data.sizes;
  sizes[axis] = by_lengths ? bounds.sizes.back() : bounds.sizes.back() - 1;
  return new_like(data, sizes);
}

/// Segment s of row o covers [bounds[i], bounds[i + 1]) along the axis, where i is o * (count + 1) + s.
struct Segments {
  std::int64_t count = 0;
  std::vector<std::int64_t> bounds;
  DimSplit split;

  explicit Segments(const EvalCall& c) {
    const Tensor& data = c.tensor("data");
    std::int64_t axis = wrap_dim(c.integer("axis"), data.dim());
    split = split_at(data.sizes, axis);
    bool by_lengths = c.has("lengths");
    Tensor given = load(c.tensor(by_lengths ? "lengths" : "offsets"), DType::Int64);
    count = given.sizes.back() - (by_lengths ? 0 : 1);
    for (std::int64_t o = 0; o < split.outer; ++o) {
      std::int64_t at = 0;
      if (!by_lengths) {
        bounds.insert(bounds.end(), given.as<std::int64_t>() + o * (count + 1),
                      given.as<std::int64_t>() + (o + 1) * (count + 1));
        continue;
      }
      bounds.push_back(0);
      for (std::int64_t s = 0; s < count; ++s) {
        std::int64_t length = given.as<std::int64_t>()[o * count + s];
        if (length < 0) fail("lengths contains negative value!");
        if (length > split.length - at)
          fail("Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1)");
        bounds.push_back(at += length);
      }
    }
    for (std::int64_t b : bounds)
      if (b < 0 || b > split.length) fail("segment_reduce: an offset is out of range");
  }
  /// Calls f(index of the result's element, index of the segment's first element, length of the segment).
  void each(auto f) const {
    for (std::int64_t o = 0; o < split.outer; ++o)
      for (std::int64_t s = 0; s < count; ++s)
        for (std::int64_t i : steps(split.inner, split.length)) {
          auto at = static_cast<std::size_t>(o * (count + 1) + s);
          auto element = [&](std::int64_t k) { return (o * split.length + k) * split.inner + i; };
          f((o * count + s) * split.inner + i, element(bounds[at]), bounds[at + 1] - bounds[at]);
        }
  }
};

Value eval_segment_reduce(EvalCall& c) {
  Tensor y = zeros_for(c, fake_segment_reduce), x = load(c.tensor("data"), y.dtype);
  Segments segments(c);
  Reduce how = reduction(c.string("reduce"));
  bool has_initial = c.has("initial");
  double initial = has_initial ? as_double(c.number("initial")) : 0;
  dispatch_floating(y.dtype, "segment_reduce", [&]<class T>() {
    constexpr T inf = std::numeric_limits<T>::infinity();
    T start = has_initial           ? static_cast<T>(initial)
              : how == Reduce::Max  ? -inf
              : how == Reduce::Min  ? inf
              : how == Reduce::Prod ? T(1)
                                    : T(0);
    segments.each([&](std::int64_t to, std::int64_t from, std::int64_t length) {
      T value = start;
      for (std::int64_t k = 0; k < length; ++k) {
        T next = x.as<T>()[from + k * segments.split.inner];
        switch (how) {
          case Reduce::Max:
            value = std::isnan(next) ? next : std::max(value, next);
            break;
          case Reduce::Min:
            value = std::isnan(next) ? next : std::min(value, next);
            break;
          case Reduce::Prod:
            value *= next;
            break;
          default:
            value += next;
        }
      }
      if (how == Reduce::Mean && length == 0 && !has_initial) value = std::numeric_limits<T>::quiet_NaN();
      if (how == Reduce::Mean && length > 0 && !std::isnan(value)) value /= static_cast<T>(length);
      y.as<T>()[to] = value;
    });
  });
  return y;
}

Meta fake_segment_reduce_backward(FakeCall& c) {
  const TensorMeta reduced = *fake_segment_reduce(c).tensor();
  for (const char* name : {"grad", "output"}) {
    if (!checked_sizes(c, c.tensor(name).sizes, reduced.sizes, "segment_reduce gradient"))
      fail(std::string("_segment_reduce_backward: ") + name + " does not have the sizes of the reduced data");
  }
  return new_like(c.tensor("grad"), c.tensor("data").sizes);
}

/// Elements that equal the extreme share the gradient equally. For prod, a factor of 0 or NaN gets the product of the
/// other factors.
Value eval_segment_reduce_backward(EvalCall& c) {
  Tensor y = zeros_for(c, fake_segment_reduce_backward), grad = load(c.tensor("grad"), y.dtype);
  Tensor result = load(c.tensor("output"), y.dtype), x = load(c.tensor("data"), y.dtype);
  Segments segments(c);
  Reduce how = reduction(c.string("reduce"));
  double initial = c.has("initial") ? as_double(c.number("initial")) : 1;
  dispatch_floating(y.dtype, "_segment_reduce_backward", [&]<class T>() {
    std::int64_t step = segments.split.inner;
    segments.each([&](std::int64_t to, std::int64_t from, std::int64_t length) {
      T g = grad.as<T>()[to], r = result.as<T>()[to];
      const T* in = x.as<T>() + from;
      T* at = y.as<T>() + from;
      std::int64_t shared = 0;
      for (std::int64_t k = 0; k < length; ++k) {
        T v = in[k * step];
        switch (how) {
          case Reduce::Sum:
            at[k * step] = g;
            break;
          case Reduce::Mean:
            at[k * step] = g / static_cast<T>(length);
            break;
          case Reduce::Max:
          case Reduce::Min:
            if (std::isnan(v) || v == r) {
              at[k * step] = g;
              ++shared;
            }
            break;
          case Reduce::Prod:
            if (v != 0 && !std::isnan(v)) {
              at[k * step] = g * r / v;
              break;
            }
            T others = static_cast<T>(initial);
            for (std::int64_t j = 0; j < length; ++j)
              if (j != k) others *= in[j * step];
            at[k * step] = g * others;
        }
      }
      for (std::int64_t k = 0; shared > 1 && k < length; ++k) at[k * step] /= static_cast<T>(shared);
    });
  });
  return y;
}

}  // namespace

void register_segment_reduce(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten.segment_reduce.default", fake_segment_reduce, eval_segment_reduce,
        {{"data",
          "aten._segment_reduce_backward.default(grad, result, data, reduce, lengths=lengths, "
          "offsets=offsets, axis=axis, initial=initial)"}});
  t.add("aten._segment_reduce_backward.default", fake_segment_reduce_backward, eval_segment_reduce_backward);
}

}  // namespace partita
