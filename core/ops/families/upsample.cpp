// Interpolation. PyTorch's compiler path has no upsampling operators: every mode becomes reads at computed indices.
#include <cmath>

#include "core/ops/families.h"
#include "core/ops/gradients.h"
#include "core/ops/layout.h"

namespace partita {

namespace {

/// Output sizes of the .vec overloads, and the scale given for each dimension (0: none).
struct Target {
  SymList sizes;
  std::vector<double> scales;
};

Target target_of(DecomposeCall& c, std::size_t rank) {
  const TensorMeta& input = c.tensor("input");
  if (input.dim() != rank + 2) fail("upsampling expects an input of " + std::to_string(rank + 2) + " dimensions, got " + std::to_string(input.dim()));
  bool sized = c.has("output_size"), scaled = c.has("scale_factors");
  if (sized == scaled) fail("Must specify exactly one of output_size and scale_factors");
  Target target{{}, std::vector<double>(rank, 0.0)};
  if (sized) {
    target.sizes = c.syms("output_size");
  } else {
    const ArgList* list = c.arg("scale_factors").get<ArgList>();
    for (std::size_t i = 0; list && i < list->items.size() && i < rank; ++i) {
      const double* scale = list->items[i].get<double>();
      if (!scale || !(*scale > 0) || *scale > 1e9) fail("scale_factors must be positive numbers");
      target.scales[i] = *scale;
      SymExpr in = input.sizes[i + 2];
      if (*scale == std::floor(*scale)) target.sizes.push_back(in * static_cast<std::int64_t>(*scale));
      else if (in.is_int()) target.sizes.push_back(static_cast<std::int64_t>(static_cast<double>(in.as_int()) * *scale));
      else fail_unsupported("upsampling a symbolic size by a scale that is no whole number");
    }
  }
  if (target.sizes.size() != rank) fail("upsampling: one size or scale for each spatial dimension expected");
  return target;
}

std::int64_t known(SymExpr size) {
  if (!size.is_int()) fail_unsupported("upsampling between symbolic sizes");
  return size.as_int();
}

double ratio(std::int64_t in, std::int64_t out, double scale) {
  return scale > 0 ? 1.0 / scale : static_cast<double>(in) / static_cast<double>(out);
}

Node* trailing_ones(Builder& b, Node* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x = b.call("aten.unsqueeze.default", {x, -1});
  return x;
}

Node* arange(Builder& b, std::int64_t size, const TensorMeta& like, std::optional<DType> dtype) {
  Kwargs kwargs;
  if (dtype) kwargs.emplace_back("dtype", *dtype);
  kwargs.emplace_back("device", like.device);
  kwargs.emplace_back("pin_memory", false);
  return b.call("aten.arange.default", {size}, std::move(kwargs));
}

Arg in_format_of(DecomposeCall& c, Node* result) {
  MemoryFormat format = suggest_memory_format(c.tensor("input"), c.shapes);
  return c.build.call("aten.contiguous.default", {result}, {{"memory_format", format}});
}

template <std::size_t rank, bool exact>
Arg decompose_nearest(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& input = c.tensor("input");
  Target target = target_of(c, rank);
  std::vector<Arg> indices(2);
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t in = known(input.sizes[d + 2]), out = known(target.sizes[d]);
    double scale = target.scales[d] > 0 ? static_cast<double>(in) / (static_cast<double>(in) * target.scales[d]) : ratio(in, out, 0);
    Node* x = arange(b, out, input, DType::Float32);
    x = b.call("aten.mul.Tensor", {b.call("aten.add.Tensor", {x, exact ? 0.5 : 0.0}), scale});
    x = b.call("aten._to_copy.default", {x}, {{"dtype", DType::Int64}});
    indices.emplace_back(trailing_ones(b, x, rank - 1 - d));
  }
  return in_format_of(c, b.call("aten._unsafe_index.Tensor", {c.arg("input"), Arg::list(std::move(indices))}));
}

/// The two neighbours of every output position along one dimension, and where between them it lies.
struct Axis {
  Node *position, *low, *high;
};

template <std::size_t rank>
Axis axis(DecomposeCall& c, std::size_t d, const Target& target, DType dtype) {
  Builder& b = c.build;
  std::int64_t in = known(c.tensor("input").sizes[d + 2]), out = known(target.sizes[d]);
  bool align = c.boolean("align_corners");
  double scale = align ? (out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0) : ratio(in, out, target.scales[d]);
  Node* x = b.call("aten._to_copy.default", {arange(b, out, c.tensor("input"), std::nullopt)}, {{"dtype", dtype}});
  if (align) x = b.call("aten.mul.Tensor", {x, scale});
  else x = b.call("aten.sub.Tensor", {b.call("aten.mul.Tensor", {b.call("aten.add.Tensor", {x, 0.5}), scale}), 0.5});
  x = b.call("aten.clamp.default", {x, 0.0});
  SymList shape(rank - d, 1);
  shape[0] = out;
  x = b.call("aten.view.default", {x, b.sizes(shape)});
  Node* low = b.call("aten._to_copy.default", {x}, {{"dtype", DType::Int64}});
  Node* high = b.call("aten.clamp.default", {b.call("aten.add.Tensor", {low, 1}), Arg(), in - 1});
  return {x, low, high};
}

template <std::size_t rank>
Arg decompose_linear_interpolation(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& input = c.tensor("input");
  Target target = target_of(c, rank);
  DType dtype = is_floating(input.dtype) ? input.dtype : DType::Float32;
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < rank; ++d) axes.push_back(axis<rank>(c, d, target, dtype));
  std::vector<Node*> corners;
  for (std::size_t corner = 0; corner < (1u << rank); ++corner) {
    std::vector<Arg> indices(2);
    for (std::size_t d = 0; d < rank; ++d) indices.emplace_back(corner >> (rank - 1 - d) & 1 ? axes[d].high : axes[d].low);
    Node* v = b.call("aten._unsafe_index.Tensor", {c.arg("input"), Arg::list(std::move(indices))});
    if (b.tensor(v).dtype != dtype) v = b.call("aten._to_copy.default", {v}, {{"dtype", dtype}});
    corners.push_back(v);
  }
  for (std::size_t d = rank; d-- > 0;) {
    Node* weight = b.call("aten.clamp.default", {b.call("aten.sub.Tensor", {axes[d].position, axes[d].low}), 0.0, 1.0});
    std::vector<Node*> mixed;
    for (std::size_t i = 0; i < corners.size(); i += 2) {
      Node* step = b.call("aten.sub.Tensor", {corners[i + 1], corners[i]});
      mixed.push_back(b.call("aten.add.Tensor", {corners[i], b.call("aten.mul.Tensor", {step, weight})}));
    }
    corners = std::move(mixed);
  }
  Node* result = in_format_of(c, corners[0]).node();
  return is_floating(input.dtype) ? result : b.call("aten.round.default", {result});
}

}  // namespace

void register_upsample(OpTable& t) {
  t.add("aten.upsample_nearest1d.vec", {.decompose = decompose_nearest<1, false>});
  t.add("aten.upsample_nearest2d.vec", {.decompose = decompose_nearest<2, false>});
  t.add("aten.upsample_nearest3d.vec", {.decompose = decompose_nearest<3, false>});
  t.add("aten._upsample_nearest_exact1d.vec", {.decompose = decompose_nearest<1, true>});
  t.add("aten._upsample_nearest_exact2d.vec", {.decompose = decompose_nearest<2, true>});
  t.add("aten._upsample_nearest_exact3d.vec", {.decompose = decompose_nearest<3, true>});
  t.add("aten.upsample_linear1d.vec", {.decompose = decompose_linear_interpolation<1>});
  t.add("aten.upsample_bilinear2d.vec", {.decompose = decompose_linear_interpolation<2>});
  t.add("aten.upsample_trilinear3d.vec", {.decompose = decompose_linear_interpolation<3>});
}

}  // namespace partita
