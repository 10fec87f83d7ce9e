#include "core/interp/random_values.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/ir/place.h"

namespace partita {
namespace {

/// Uniform in (0, 1], a function of (seed, position).
double uniform(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15ULL * (i + 1);  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return static_cast<double>((x >> 11) + 1) * 0x1p-53;
}
double normal(std::uint64_t seed, std::uint64_t i) {
  return std::sqrt(-2 * std::log(uniform(seed, 2 * i))) * std::cos(2 * std::numbers::pi * uniform(seed, 2 * i + 1));
}

Result<Sizes> with_hints(const SymList& list, const ShapeEnv& shapes) {
  Sizes out;
  for (SymExpr e : list) {
    const auto v = shapes.hint(e);
    if (!v)
      return input_error("interp.random",
                         fmt::format("the size {} has no example value; give the inputs by --inputs", e.str()));
    out.push_back(*v);
  }
  return out;
}

/// Copies the values into a tensor with the meta's dtype and strides.
Result<Value> laid_out(const Tensor& dense, const TensorMeta& t, const ShapeEnv& shapes) {
  TRY(Tensor values, dense.to(t.dtype));
  if (!t.strides_known) return Value(std::move(values));
  TRY(Sizes strides, with_hints(t.strides, shapes));
  if (strides == values.strides) return Value(std::move(values));
  TRY(Tensor out, Tensor::empty_strided(t.dtype, values.sizes, std::move(strides)));
  out.copy_from(values);
  return Value(std::move(out));
}

}  // namespace

Result<Value> random_value(const Meta& meta, const ShapeEnv& shapes, std::uint64_t seed) {
  if (const SymExpr* e = meta.sym()) {
    TRY(const Sizes one, with_hints({*e}, shapes));
    return Value(one[0]);
  }
  const TensorMeta* t = meta.tensor();
  if (const auto* opaque = std::get_if<OpaqueMeta>(&meta.v))
    return input_error("interp.random",
                       fmt::format("no random value can be made of a {}; give it by --inputs", opaque->text));
  if (!t)
    return input_error("interp.random",
                       "no random value can be made, because it is not known to be a tensor; give it by --inputs");
  TRY(Sizes sizes, with_hints(t->sizes, shapes));
  if (is_opaque(t->dtype)) {
    TRY(const Tensor bits, Tensor::empty(t->dtype, sizes));
    for (std::size_t i = 0; i < bits.storage->bytes(); ++i)
      bits.storage->data()[i] = static_cast<std::byte>(uniform(seed, i) * 256);
    return laid_out(bits, *t, shapes);
  }
  TRY(Tensor dense, Tensor::empty(is_complex(t->dtype) ? DType::Complex64 : DType::Float32, sizes));
  const std::int64_t n = dense.numel() * (is_complex(t->dtype) ? 2 : 1);
  const bool floats = is_floating(t->dtype) || is_complex(t->dtype);
  const double centre = sizes.size() == 1 ? 1 : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    dense.as<float>()[i] = static_cast<float>(floats ? centre + 0.1 * normal(seed, at) : uniform(seed, at) > 0.5);
  }
  if (!floats && sizes.size() == 1 && n > 0) {
    std::sort(dense.as<float>(), dense.as<float>() + n);
    dense.as<float>()[0] = 0;
  }
  return laid_out(dense, *t, shapes);
}

Result<Value> filled_value(const Meta& meta, const ShapeEnv& shapes, double value) {
  const TensorMeta* t = meta.tensor();
  CHECK(t, "only tensors can be filled");
  TRY(const Sizes sizes, with_hints(t->sizes, shapes));
  TRY(const Tensor one, Tensor::scalar(t->dtype, value));
  TRY(const Tensor dense, one.view_as(sizes, Sizes(sizes.size(), 0), 0).contiguous());
  return laid_out(dense, *t, shapes);
}

Result<Value> get_input(const Meta& meta, std::uint64_t seed) {
  const TensorMeta* t = meta.tensor();
  if (!t || !concrete(t->sizes) || !concrete(t->strides))
    return input_error("interp.random", "get_inputs makes tensors of plain sizes only; give the input by a file");
  const bool complex = is_complex(t->dtype);
  TRY(Tensor dense, Tensor::zeros(complex ? DType::Complex64 : DType::Float32, *concrete(t->sizes)));
  if (complex || is_floating(t->dtype))
    for (std::int64_t i = 0, n = dense.numel() * (complex ? 2 : 1); i < n; ++i)
      // 24 bits, as torch.rand has, so that rounding does not reach 1.
      dense.as<float>()[i] =
          static_cast<float>(std::floor((1 - uniform(seed, static_cast<std::uint64_t>(i))) * 0x1p24) * 0x1p-24);
  return laid_out(dense, *t, ShapeEnv());
}

void choose_sizes(const Graph& graph) {
  // All symbols get one size, because text does not tell which of them must be equal (the batch of inputs and labels).
  constexpr std::int64_t size = 8;
  const auto choose = [&](SymExpr e) {
    for (const std::string& symbol : e.symbols()) {
      if (!symbol.starts_with('s') || graph.shapes->hint(SymExpr::symbol(symbol))) continue;
      const auto ranges = graph.shapes->ranges();
      const auto range = ranges.find(symbol);
      graph.shapes->set_hint(symbol,
                             range == ranges.end() ? size : std::clamp(size, range->second.low, range->second.high));
    }
  };
  for (const Node* node : graph.placeholders()) {
    if (const SymExpr* e = node->meta.sym()) choose(*e);
    if (const TensorMeta* t = node->meta.tensor()) std::ranges::for_each(t->sizes, choose);
  }
}

Result<std::vector<Value>> random_inputs(const Graph& graph, std::uint64_t seed) {
  choose_sizes(graph);
  std::vector<Value> out;
  for (const Node* node : graph.placeholders()) {
    auto value = random_value(node->meta, *graph.shapes, hash_combine(seed, out.size() + 1));
    if (!value) return at_node(std::move(value).error(), *node);
    out.push_back(*std::move(value));
  }
  return out;
}

}  // namespace partita
