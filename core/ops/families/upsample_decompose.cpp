// Interpolation decomposed to other operators. PyTorch's compiler path has no upsampling operators: every mode reads
// the input at computed indices.
#include <cmath>

#include <fmt/format.h>

#include "core/ops/families/upsample.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {

namespace {

constexpr const char* scale_names[] = {"scales_d", "scales_h", "scales_w"};

/// A scale that is a number; nullopt for one that the graph computes.
std::optional<double> number_of(SymExpr scale) {
  if (scale.is_int()) return static_cast<double>(scale.as_int());
  return scale.kind() == SymKind::Float ? std::optional(scale.as_float()) : std::nullopt;
}

/// The scale in an argument; 0 for None.
SymExpr scale_in(const Arg& arg) {
  if (const auto literal = as_number(arg)) return SymExpr::real(as_double(*literal));
  const SymExpr* e = arg.node() ? arg.node()->meta.sym() : nullptr;
  return e ? *e : SymExpr(0);
}

/// Output sizes from scale factors: size times factor, rounded down.
SymList scaled_sizes(const TensorMeta& input, const SymList& scales) {
  SymList sizes;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const SymExpr in = input.sizes[i + 2];
    const std::optional<double> known = number_of(scales[i]);
    if (!known) {
      sizes.push_back(scales[i].is_float() ? sym_call("TruncToInt", {scales[i] * sym_call("ToFloat", {in})})
                                           : in * scales[i]);
      continue;
    }
    const double scale = *known;
    if (!(scale > 0) || scale > 1e9) fail("scale_factors must be positive numbers");
    if (scale == std::floor(scale))
      sizes.push_back(in * static_cast<std::int64_t>(scale));
    else if (in.is_int())
      sizes.push_back(as_int(static_cast<double>(in.as_int()) * scale));
    else
      sizes.push_back(sym_call("TruncToInt", {SymExpr::real(scale) * sym_call("ToFloat", {in})}));
  }
  return sizes;
}

}  // namespace

void check_resample_sizes(const FakeCall& c, const SymList& input, const SymList& output, std::size_t rank) {
  if (input.size() != rank + 2)
    fail("It is expected input_size equals to " + std::to_string(rank + 2) + ", but got size " +
         std::to_string(input.size()));
  if (output.size() != rank)
    fail("It is expected output_size equals to " + std::to_string(rank) + ", but got size " +
         std::to_string(output.size()));
  if (input[1].is(0))
    fail("Non-empty " + std::to_string(rank + 2) + "D data tensor expected but got a tensor without channels");
  for (std::size_t d = 0; d < rank; ++d)
    if (!checked(c, sym_and(sym_lt(0, input[d + 2]), sym_lt(0, output[d])), "upsample sizes"))
      fail("Input and output sizes should be greater than 0, but got input size " + input[d + 2].str() +
           " and output size " + output[d].str());
  for (std::size_t d = 0; d < rank; ++d) {
    const char* name = rank == 1 ? "scales" : scale_names[3 - rank + d];
    if (c.schema.index_of(name) < 0 || !c.has(name) || !output[d].is_int()) continue;
    const auto known = c.known_number(name);
    if (!known) continue;
    // Positions in the input are computed in single precision, and used as 64-bit numbers.
    const double scale = as_double(*known), step = static_cast<double>(static_cast<float>(1 / scale));
    if (scale > 0 && !(step * static_cast<double>(output[d].as_int()) < 0x1p62))
      fail(fmt::format("{}: for a scale of {} the positions in the input are beyond 64 bits", c.schema.base, scale));
  }
}

ResampleTarget resample_target(const FakeCall& c, const TensorMeta& input, std::size_t rank) {
  ResampleTarget target{{}, SymList(rank, 0)};
  bool by_factors = c.schema.index_of("scale_factors") >= 0;
  if (by_factors && c.has("output_size") == c.has("scale_factors"))
    fail("Must specify exactly one of output_size and scale_factors");
  if (c.has("output_size")) target.sizes = c.syms("output_size");
  if (by_factors && c.has("scale_factors")) {
    const ArgList* list = c.arg("scale_factors").get<ArgList>();
    if (!list || list->items.size() != rank) fail("upsampling: one scale for each spatial dimension expected");
    for (std::size_t i = 0; i < rank; ++i) target.scales[i] = scale_in(list->items[i]);
    target.sizes = input.dim() == rank + 2 ? scaled_sizes(input, target.scales) : SymList(rank, 1);
  } else if (!by_factors) {
    for (std::size_t i = 0; i < rank; ++i) {
      const char* name = rank == 1 ? "scales" : scale_names[3 - rank + i];
      target.scales[i] = scale_in(c.arg(name));
    }
  }
  check_resample_sizes(c, input.sizes, target.sizes, rank);
  return target;
}

bool is_small_or_channels_last(const FakeCall& c, const SymList& sizes, const SymList& strides, const SymList& output) {
  if (output.size() == 2 && c.test(sym_le(output[0] + output[1], 128), "a small image")) return true;
  if (output.size() == 1 || c.test(sym_le(sizes[1], 3), "three channels at most")) return false;
  const SymList last = channels_last_strides(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (!sizes[d].is(1) && strides[d] != last[d]) return false;
  return true;
}

namespace {

/// The steps in the input from one output element to the next: a number, or the node that holds it.
Arg ratio(Builder& b, SymExpr in, SymExpr out, SymExpr scale) {
  const std::optional<double> known = number_of(scale);
  if (!known) {
    Node* const positive = b.call("_operator.gt", {b.size(scale), 0});
    // Both sides of the choice are computed.
    Node* const divisor = b.call("torch.sym_ite", {positive, b.size(scale), 1.0});
    return b.call("torch.sym_ite", {positive, b.call("_operator.truediv", {1.0, divisor}), ratio(b, in, out, 0)});
  }
  if (*known > 0) return 1.0 / *known;
  if (in.is_int() && out.is_int()) return static_cast<double>(in.as_int()) / static_cast<double>(out.as_int());
  return b.call("_operator.truediv", {b.size(in), b.size(out)});
}

Node* trailing_ones(Builder& b, Node* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x = b.call("aten.unsqueeze.default", {x, -1});
  return x;
}

Node* arange(Builder& b, SymExpr size, const TensorMeta& like, std::optional<DType> dtype) {
  Kwargs kwargs;
  if (dtype) kwargs.emplace_back("dtype", *dtype);
  kwargs.emplace_back("device", like.device);
  kwargs.emplace_back("pin_memory", false);
  return b.call("aten.arange.default", {b.size(size)}, std::move(kwargs));
}

/// Whether `out` is exactly `scale` times `in`.
bool is_multiple(SymExpr in, SymExpr out, SymExpr scale) {
  const std::optional<double> known = number_of(scale);
  if (!known) return !scale.is_float() && out == in * scale;
  return *known == std::floor(*known) && out == in * static_cast<std::int64_t>(*known);
}

/// Is there a scale? PyTorch's kernels take no notice of one that is not positive.
bool is_given(SymExpr scale) {
  const std::optional<double> known = number_of(scale);
  return !known || *known > 0;
}

/// Clamps indices to `in` inputs where the largest of `out`, about (out - 1 + ahead) / scale - before, may exceed them:
/// a scale that the caller gives need not fit the sizes.
Node* kept_inside(Builder& b, Node* positions, SymExpr in, SymExpr out, SymExpr scale, double ahead, double before) {
  bool fits = is_multiple(in, out, scale);
  if (const auto known = number_of(scale); known && in.is_int() && out.is_int())
    fits = (static_cast<double>(out.as_int() - 1) + ahead) / *known - before < static_cast<double>(in.as_int()) - 0.01;
  return fits ? positions : b.call("aten.clamp.default", {positions, Arg(), b.size(in - 1)});
}

/// The first argument; overloads call it input or self.
const TensorMeta& input_of(const DecomposeCall& c) {
  return Builder::tensor(c.args[0]);
}
/// Half types are interpolated in float32.
Arg widened(DecomposeCall& c) {
  const DType dtype = input_of(c).dtype;
  return to_dtype(c.build, c.args[0], is_floating(dtype) ? opmath_dtype(dtype) : dtype);
}
Node* narrowed(DecomposeCall& c, Node* result) {
  return to_dtype(c.build, result, input_of(c).dtype);
}

Arg in_format_of(DecomposeCall& c, Node* result) {
  MemoryFormat format = suggest_memory_format(input_of(c), c.shapes);
  return c.build.call("aten.contiguous.default", {result}, {{"memory_format", format}});
}

/// Whether PyTorch's kernel takes no notice of the scale that is given for a dimension.
bool ignores_scale(const DecomposeCall& c, const ResampleTarget& target, std::size_t d) {
  const TensorMeta& input = input_of(c);
  const SymExpr in = input.sizes[d + 2], out = target.sizes[d];
  if (is_multiple(in, out, target.scales[d])) return false;  // it makes no difference
  return c.test(sym_or(sym_eq(out, in), sym_eq(out, in * 2)), "an image of the same or of twice the size") &&
         is_small_or_channels_last(c, input.sizes, input.strides, target.sizes);
}

}  // namespace

Arg interpolate_nearest(DecomposeCall& c, std::size_t rank, bool exact) {
  Builder& b = c.build;
  const TensorMeta& input = input_of(c);
  ResampleTarget target = resample_target(c, input, rank);
  Arg image = widened(c);
  std::vector<Arg> indices(2);
  for (std::size_t d = 0; d < rank; ++d) {
    const SymExpr in = input.sizes[d + 2], out = target.sizes[d];
    const bool ignored = !exact && is_given(target.scales[d]) && ignores_scale(c, target, d);
    const SymExpr given = ignored ? SymExpr(0) : target.scales[d];
    const Arg scale = ratio(b, in, out, given);
    Node* x = arange(b, out, input, DType::Float32);
    x = b.call("aten.mul.Tensor", {b.call("aten.add.Tensor", {x, exact ? 0.5 : 0.0}), scale});
    x = b.call("aten._to_copy.default", {x}, {{"dtype", DType::Int64}});
    if (is_given(given)) x = kept_inside(b, x, in, out, given, exact ? 0.5 : 0.0, 0);
    indices.emplace_back(trailing_ones(b, x, rank - 1 - d));
  }
  Node* result = b.call("aten._unsafe_index.Tensor", {image, Arg::list(std::move(indices))});
  return narrowed(c, in_format_of(c, result).node());
}

namespace {

/// The positions in the input of output elements 0 to out - 1.
Node* source_positions(DecomposeCall& c, SymExpr in, SymExpr out, SymExpr given, DType dtype) {
  Builder& b = c.build;
  Node* x = b.call("aten._to_copy.default", {arange(b, out, input_of(c), std::nullopt)}, {{"dtype", dtype}});
  if (c.boolean("align_corners")) {
    const bool several = c.test(sym_lt(1, out), "several elements between aligned corners");
    return b.call("aten.mul.Tensor", {x, several ? ratio(b, in - 1, out - 1, 0) : Arg(0.0)});
  }
  x = b.call("aten.mul.Tensor", {b.call("aten.add.Tensor", {x, 0.5}), ratio(b, in, out, given)});
  return b.call("aten.sub.Tensor", {x, 0.5});
}

/// For each output element along one dimension: its position in the input, and the indices of its two neighbours. Of
/// equal sizes `high` is null: PyTorch's kernels copy, whatever scale is given, so that a NaN spoils no neighbour.
struct Axis {
  Node *position, *low, *high = nullptr;
};

Axis axis(DecomposeCall& c, std::size_t d, const ResampleTarget& target, DType dtype) {
  Builder& b = c.build;
  const SymExpr in = input_of(c).sizes[d + 2], out = target.sizes[d];
  const bool same = c.test(sym_eq(in, out), "an image of the same size");
  const SymExpr given = same ? SymExpr(0) : target.scales[d];
  Node* x = source_positions(c, in, out, given, dtype);
  x = b.call("aten.clamp.default", {x, 0.0});
  SymList shape(target.sizes.size() - d, 1);
  shape[0] = out;
  x = b.call("aten.view.default", {x, b.sizes(shape)});
  Node* low = b.call("aten._to_copy.default", {x}, {{"dtype", DType::Int64}});
  if (same) return {x, low};
  if (!c.boolean("align_corners") && is_given(given)) low = kept_inside(b, low, in, out, given, 0.5, 0.5);
  Node* high = b.call("aten.clamp.default", {b.call("aten.add.Tensor", {low, 1}), Arg(), b.size(in - 1)});
  return {x, low, high};
}

}  // namespace

Arg interpolate_linear(DecomposeCall& c, std::size_t rank) {
  Builder& b = c.build;
  const TensorMeta& input = input_of(c);
  ResampleTarget target = resample_target(c, input, rank);
  Arg x = widened(c);
  DType dtype = is_floating(input.dtype) ? b.tensor(x).dtype : DType::Float32;
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < rank; ++d) axes.push_back(axis(c, d, target, dtype));
  std::vector<std::vector<Arg>> places = {std::vector<Arg>(2)};  // of the corners; the last dimension changes fastest
  for (const Axis& of : axes) {
    std::vector<std::vector<Arg>> longer;
    for (const auto& place : places)
      for (Node* index : {of.low, of.high})
        if (index) longer.emplace_back(place).emplace_back(index);
    places = std::move(longer);
  }
  std::vector<Node*> corners;
  for (std::vector<Arg>& place : places) {
    Node* v = b.call("aten._unsafe_index.Tensor", {x, Arg::list(std::move(place))});
    corners.push_back(to_dtype(b, v, dtype));
  }
  for (std::size_t d = rank; d-- > 0;) {
    if (!axes[d].high) continue;
    Node* weight = b.call("aten.clamp.default", {b.call("aten.sub.Tensor", {axes[d].position, axes[d].low}), 0.0, 1.0});
    Node* rest = b.call("aten.rsub.Scalar", {weight, 1.0});
    // Each corner is multiplied by its weight, as in PyTorch's kernels: low + weight * (high - low) would turn
    // infinities into NaN.
    std::vector<Node*> mixed;
    for (std::size_t i = 0; i < corners.size(); i += 2)
      mixed.push_back(b.call("aten.add.Tensor", {b.call("aten.mul.Tensor", {corners[i], rest}),
                                                 b.call("aten.mul.Tensor", {corners[i + 1], weight})}));
    corners = std::move(mixed);
  }
  Node* result = in_format_of(c, corners[0]).node();
  return is_floating(input.dtype) ? narrowed(c, result) : b.call("aten.round.default", {result});
}

std::array<Node*, 4> cubic_coefficients(Builder& b, Node* t) {
  const std::vector<std::pair<std::string, Arg>> names = {{"t", t}};
  auto bound = [](const char* name, const Arg& value) {
    return std::vector<std::pair<std::string, Arg>>{{name, value}};
  };
  Arg near = b.expression("stack([t, 1.0 - t])", names), far = b.expression("stack([t + 1.0, 2.0 - t])", names);
  Arg outer = b.expression("((x * -0.75 - -3.75) * x + -6.0) * x - -3.0", bound("x", far));
  Arg inner = b.expression("(x * 1.25 - 2.25) * x * x + 1", bound("x", near));
  auto part = [&](const Arg& of, std::int64_t i) { return b.call("aten.select.int", {of, 0, i}); };
  Node *first = part(outer, 0), *last = part(outer, 1), *second = part(inner, 0);
  return {first, second, part(inner, 1), last};
}

Arg interpolate_cubic(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& input = input_of(c);
  ResampleTarget target = resample_target(c, input, 2);
  if (!is_floating(input.dtype)) fail_unsupported("bicubic interpolation of " + std::string(torch_name(input.dtype)));
  Arg x = widened(c);
  struct Line {
    std::array<Node*, 4> index, weight;
  } lines[2];
  for (std::size_t d = 0; d < 2; ++d) {
    const SymExpr in = input.sizes[d + 2], out = target.sizes[d];
    Node* at = source_positions(c, in, out, target.scales[d], b.tensor(x).dtype);
    if (d == 0) at = b.call("aten.unsqueeze.default", {at, -1});
    Node* floor = b.call("aten.floor.default", {at});
    Node* t = b.call("aten.clamp.default", {b.call("aten.sub.Tensor", {at, floor}), 0.0, 1.0});
    Node* first = b.call("aten._to_copy.default", {floor}, {{"dtype", DType::Int64}});
    for (std::int64_t k = 0; k < 4; ++k) {
      Node* place = k == 1 ? first : b.call("aten.add.Tensor", {first, k - 1});
      lines[d].index[static_cast<std::size_t>(k)] = b.call("aten.clamp.default", {place, 0, b.size(in - 1)});
    }
    lines[d].weight = cubic_coefficients(b, t);
  }
  auto weighted = [&](Node* sum, Node* value, Node* weight) {
    Node* term = b.call("aten.mul.Tensor", {value, weight});
    return sum ? b.call("aten.add.Tensor", {sum, term}) : term;
  };
  Node* result = nullptr;
  for (std::size_t i = 0; i < 4; ++i) {
    Node* row = nullptr;
    for (std::size_t k = 0; k < 4; ++k) {
      Arg indices = Arg::list({Arg(), Arg(), lines[0].index[i], lines[1].index[k]});
      row = weighted(row, b.call("aten._unsafe_index.Tensor", {x, indices}), lines[1].weight[k]);
    }
    result = weighted(result, row, lines[0].weight[i]);
  }
  return narrowed(c, in_format_of(c, result).node());
}

Arg interpolate_by_sizes(DecomposeCall& c, std::size_t rank) {
  ResampleTarget target = resample_target(c, input_of(c), rank);
  Args args = {c.args[0], c.build.sizes(target.sizes)};
  if (c.schema.index_of("align_corners") >= 0) args.push_back(c.arg("align_corners"));
  for (SymExpr scale : target.scales) {
    const auto known = number_of(scale);
    args.push_back(!is_given(scale) ? Arg() : known ? Arg(*known) : c.build.size(scale));
  }
  return c.build.call(c.schema.base + ".default", std::move(args));
}

}  // namespace partita
