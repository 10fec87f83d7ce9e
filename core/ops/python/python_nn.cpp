// Functions of torch.nn.functional that one expression cannot describe: sampling, unpooling, losses.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

std::size_t spatial_rank(Builder& b, Node* input) {
  std::size_t rank = b.tensor(input).dim();
  if (rank < 3 || rank > 5) fail("Input Error: Only 3D, 4D and 5D input Tensors supported");
  return rank - 2;
}

/// The position of a string argument among the choices; fails when it is none of them.
std::int64_t choice(NamedArgs& names, std::string_view key, std::initializer_list<std::string_view> choices) {
  const auto* text = value_of(names, key).get<std::string>();
  auto it = text ? std::find(choices.begin(), choices.end(), *text) : choices.end();
  if (it == choices.end()) fail(fmt::format("{} must be one of {}", key, fmt::join(choices, ", ")));
  return it - choices.begin();
}

/// Is it anything but a number that the graph computes?
bool is_known(const Arg& arg) {
  const SymExpr* e = arg.node() ? arg.node()->meta.sym() : nullptr;
  return !e || e->is_int() || e->kind() == SymKind::Float;
}

Number number(const Arg& arg) {
  if (const SymExpr* e = arg.node() ? arg.node()->meta.sym() : nullptr) {
    if (e->is_int()) return e->as_int();
    if (e->kind() == SymKind::Float) return e->as_float();
    fail_unsupported("a size that depends on the number " + e->str());
  }
  std::optional<Number> n = as_number(arg);
  if (!n && arg.node() && arg.node()->meta.sym()) fail_unsupported("a number that is known only at run time");
  if (!n) fail("a number is expected");
  return *n;
}

double real(const Arg& arg) {
  return as_double(number(arg));
}

bool truth(NamedArgs& names, std::string_view key) {
  if (value_of(names, key).node()) fail_unsupported(fmt::format("{} that is known only at run time", key));
  return value_of(names, key) == Arg(true);
}

Arg as_floats(const Arg& list) {
  const ArgList* l = list.get<ArgList>();
  if (!l) return list;
  std::vector<Arg> items;
  for (const Arg& item : l->items) items.push_back(is_known(item) ? Arg(real(item)) : item);
  return Arg::list(std::move(items));
}

/// Output sizes from scale factors: size times factor, rounded down.
Arg scaled_sizes(Builder& b, Node* input, const Arg& scales) {
  const ArgList* list = scales.get<ArgList>();
  std::vector<Arg> sizes;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const SymExpr size = b.tensor(input).sizes.at(i + 2);
    if (size.is_int() && is_known(list->items[i]))
      sizes.emplace_back(as_int(std::floor(static_cast<double>(size.as_int()) * real(list->items[i]))));
    else
      sizes.emplace_back(b.call("math.floor", {b.call("_operator.mul", {b.size(size), list->items[i]})}));
  }
  return Arg::list(std::move(sizes));
}

Arg interpolate(Builder& b, NamedArgs& names) {
  Node* input = node_of(names, "input");
  std::size_t rank = spatial_rank(b, input);
  const auto* text = value_of(names, "mode").get<std::string>();
  if (!text) fail("interpolate: mode must be a string");
  const std::string mode = *text;
  Arg size = repeated(value_of(names, "size"), rank);
  Arg scale = as_floats(repeated(value_of(names, "scale_factor"), rank));
  if (size.is_none() == scale.is_none()) fail("interpolate: exactly one of size and scale_factor must be given");
  bool antialias = truth(names, "antialias");
  if (antialias && !((mode == "bilinear" || mode == "bicubic" || mode == "lanczos") && rank == 2))
    fail("Anti-alias option is restricted to bilinear, bicubic and lanczos modes and requires a 4-D tensor as input");
  if (!scale.is_none() && (mode == "area" || truth(names, "recompute_scale_factor"))) {
    size = scaled_sizes(b, input, scale);
    scale = Arg();
  }
  if (mode == "area") return b.call(fmt::format("aten.adaptive_avg_pool{}d.default", rank), {input, size});
  if (mode == "nearest" || mode == "nearest-exact") {
    std::string base = mode == "nearest" ? "upsample_nearest" : "_upsample_nearest_exact";
    return b.call(fmt::format("aten.{}{}d.vec", base, rank), {input, size, scale});
  }
  struct ModeRow {
    std::string_view mode, op;
    std::size_t rank;
    bool antialias = false;
  };
  constexpr ModeRow modes[] = {{"linear", "upsample_linear1d", 1},
                               {"bilinear", "upsample_bilinear2d", 2},
                               {"bicubic", "upsample_bicubic2d", 2},
                               {"trilinear", "upsample_trilinear3d", 3},
                               {"bilinear", "_upsample_bilinear2d_aa", 2, true},
                               {"bicubic", "_upsample_bicubic2d_aa", 2, true},
                               {"lanczos", "_upsample_lanczos2d_aa", 2, true}};
  for (const ModeRow& row : modes)
    if (row.mode == mode && row.rank == rank && row.antialias == antialias)
      return b.call(fmt::format("aten.{}.vec", row.op),
                    {input, size, lookup(names, "align_corners") && truth(names, "align_corners"), scale});
  fail(fmt::format("interpolate: mode '{}' does not fit an input of {} dimensions", mode, rank + 2));
}

/// upsample and its variants lack some parameters of interpolate, which get their defaults.
Arg upsample(Builder& b, NamedArgs& names) {
  names.emplace_back("recompute_scale_factor", Arg());
  names.emplace_back("antialias", false);
  if (!lookup(names, "mode")) names.emplace_back("mode", "nearest");
  return interpolate(b, names);
}
Arg upsample_bilinear(Builder& b, NamedArgs& names) {
  names.emplace_back("mode", "bilinear");
  names.emplace_back("align_corners", true);
  return upsample(b, names);
}

Arg grid_sample(Builder& b, NamedArgs& names) {
  std::int64_t mode = choice(names, "mode", {"bilinear", "nearest", "bicubic"});
  std::int64_t padding = choice(names, "padding_mode", {"zeros", "border", "reflection"});
  return b.call("aten.grid_sampler.default",
                {node_of(names, "input"), node_of(names, "grid"), mode, padding, truth(names, "align_corners")});
}

Arg affine_grid(Builder& b, NamedArgs& names) {
  return b.call("aten.affine_grid_generator.default",
                {node_of(names, "theta"), repeated(value_of(names, "size"), 0), truth(names, "align_corners")});
}

/// Without output_size, the size is that of an input whose pooling gives the size of this input.
template <std::size_t rank>
Arg max_unpool(Builder& b, NamedArgs& names) {
  Node *input = node_of(names, "input"), *indices = node_of(names, "indices");
  Arg kernel = repeated(value_of(names, "kernel_size"), rank), padding = repeated(value_of(names, "padding"), rank);
  Arg stride = value_of(names, "stride");
  const ArgList* given = stride.get<ArgList>();
  stride = stride.is_none() || (given && given->items.empty()) ? kernel : repeated(stride, rank);
  const TensorMeta& meta = b.tensor(input);
  if (meta.dim() < rank + 1) fail(fmt::format("max_unpool{}d: the input has too few dimensions", rank));
  auto item = [](const Arg& list, std::size_t i) -> SymExpr {
    const Arg& each = list.get<ArgList>()->items.at(i);
    return is_known(each) ? SymExpr(as_int(number(each))) : *each.node()->meta.sym();
  };
  std::vector<Arg> sizes;
  if (const ArgList* asked = value_of(names, "output_size").get<ArgList>()) {
    if (asked->items.size() < rank) fail("output_size should be a sequence of the spatial sizes");
    sizes.assign(asked->items.end() - static_cast<std::ptrdiff_t>(rank), asked->items.end());
  } else {
    for (std::size_t i = 0; i < rank; ++i)
      sizes.push_back(
          b.size((meta.sizes[meta.dim() - rank + i] - 1) * item(stride, i) + item(kernel, i) - 2 * item(padding, i)));
  }
  if (rank == 3) return b.call("aten.max_unpool3d.default", {input, indices, Arg::list(sizes), stride, padding});
  if (rank == 2) return b.call("aten.max_unpool2d.default", {input, indices, Arg::list(sizes)});
  sizes.emplace_back(1);
  auto column = [&](Node* x) { return b.call("aten.unsqueeze.default", {x, -1}); };
  Node* x = column(input);
  return b.call("aten.squeeze.dim", {b.call("aten.max_unpool2d.default", {x, column(indices), Arg::list(sizes)}), -1});
}

/// Without given samples, the windows are at random places.
template <std::size_t rank>
Arg fractional_max_pool(Builder& b, NamedArgs& names) {
  Node* input = node_of(names, "input");
  const TensorMeta& meta = b.tensor(input);
  if (meta.dim() != rank + 1 && meta.dim() != rank + 2)
    fail(fmt::format("fractional_max_pool{}d: the input has {} dimensions", rank, meta.dim()));
  Arg size = repeated(value_of(names, "output_size"), rank), ratio = repeated(value_of(names, "output_ratio"), rank);
  if (size.is_none() == ratio.is_none())
    fail("fractional_max_pool: exactly one of output_size and output_ratio must be given");
  if (size.is_none()) {
    std::vector<Arg> sizes;
    for (std::size_t i = 0; i < rank; ++i) {
      SymExpr in = meta.sizes[meta.dim() - rank + i];
      const Arg& each = ratio.get<ArgList>()->items.at(i);
      if (in.is_int() && is_known(each))
        sizes.emplace_back(as_int(static_cast<double>(in.as_int()) * real(each)));
      else
        sizes.emplace_back(b.call("math.trunc", {b.call("_operator.mul", {b.size(in), each})}));
    }
    size = Arg::list(std::move(sizes));
  }
  Arg samples = value_of(names, "_random_samples");
  if (samples.is_none()) {
    SymExpr batch = meta.dim() == rank + 2 ? meta.sizes[0] : SymExpr(1);
    samples = b.call("aten.rand.default",
                     {b.sizes({batch, meta.sizes[meta.dim() - rank - 1], static_cast<std::int64_t>(rank)})},
                     {{"dtype", meta.dtype}, {"device", meta.device}, {"pin_memory", false}});
  }
  Node* pair = b.call(fmt::format("aten.fractional_max_pool{}d.default", rank),
                      {input, repeated(value_of(names, "kernel_size"), rank), size, samples});
  Node* values = b.getitem(pair, 0);
  if (!truth(names, "return_indices")) return values;
  return Arg::tuple({values, b.getitem(pair, 1)});
}

/// Divides each element by a power of the average square over neighbouring channels.
Arg local_response_norm(Builder& b, NamedArgs& names) {
  const SymList sizes = b.tensor(node_of(names, "input")).sizes;
  if (sizes.size() < 3)
    fail("Expected 3D or higher dimensionality input (got " + std::to_string(sizes.size()) + " dimensions)");
  const std::int64_t size = as_int(number(value_of(names, "size")));
  const bool flat = sizes.size() == 3;
  names.emplace_back(
      "pads", flat ? Arg::list({0, 0, size / 2, (size - 1) / 2}) : Arg::list({0, 0, 0, 0, size / 2, (size - 1) / 2}));
  names.emplace_back("window", flat ? Arg::list({size, 1}) : Arg::list({size, 1, 1}));
  names.emplace_back("sizes", b.sizes(sizes));
  names.emplace_back("squares", b.expression("input * input", names));
  if (flat) {
    names.emplace_back(
        "mean",
        b.expression("squeeze(avg_pool2d(constant_pad_nd(unsqueeze(squares, 1), pads), window, [1]), 1)", names));
  } else {
    names.emplace_back("split", b.sizes({sizes[0], 1, sizes[1], sizes[2], -1}));
    names.emplace_back(
        "mean",
        b.expression("view(squeeze(avg_pool3d(constant_pad_nd(view(squares, split), pads), window, [1]), 1), sizes)",
                     names));
  }
  return b.expression("input / pow(mean * alpha + k, beta)", names);
}

/// A random sample of the categories by their logits. With `hard` it is a one-hot vector, whose gradient is that of the
/// soft sample.
Arg gumbel_softmax(Builder& b, NamedArgs& names) {
  names.emplace_back("drawn",
                     b.call("aten.exponential_.default", {b.call("aten.empty_like.default", {node_of(names, "logits")},
                                                                 {{"memory_format", MemoryFormat::Contiguous}})}));
  names.emplace_back("soft", b.expression("softmax((logits - log(drawn)) / tau, dim)", names));
  if (!truth(names, "hard")) return value_of(names, "soft");
  names.emplace_back("index", b.expression("argmax(soft, dim, True)", names));
  return b.expression("scatter(zeros_like(logits), dim, index, 1.0) - detach(soft) + soft", names);
}

/// (sum of x^p)^(1/p) over each window.
template <std::size_t rank>
Arg lp_pool(Builder& b, NamedArgs& names) {
  Arg kernel = repeated(value_of(names, "kernel_size"), rank);
  Arg stride = value_of(names, "stride").is_none() ? Arg::list({}) : repeated(value_of(names, "stride"), rank);
  names.emplace_back("kernel", kernel);
  names.emplace_back("steps", stride);
  Arg count = 1.0;
  for (const Arg& k : kernel.get<ArgList>()->items) count = b.expression("n * k", {{"n", count}, {"k", k}});
  names.emplace_back("count", count);
  names.emplace_back("root", b.expression("1 / norm_type", names));
  names.emplace_back(
      "out", b.expression(fmt::format("avg_pool{}d(pow(input, norm_type), kernel, steps, 0, ceil_mode)", rank), names));
  return b.expression("pow(sign(out) * relu(abs(out)) * count, root)", names);
}

Arg reduced(Builder& b, NamedArgs& names, const Arg& losses) {
  const double reduction = real(value_of(names, "reduction"));
  if (reduction == 0) return losses;
  return b.call(reduction == 1 ? "aten.mean.default" : "aten.sum.default", {losses});
}

Arg multilabel_soft_margin_loss(Builder& b, NamedArgs& names) {
  Arg losses = b.expression("-(target * log_sigmoid(input) + rsub(target, 1) * log_sigmoid(-input))", names);
  names.emplace_back("losses", losses);
  if (!value_of(names, "weight").is_none()) losses = b.expression("losses * weight", names);
  SymExpr classes = b.tensor(node_of(names, "input")).sizes.back();
  losses = b.expression("sum(losses, [-1]) / classes", {{"losses", losses}, {"classes", b.size(classes)}});
  return reduced(b, names, losses);
}

Arg gaussian_nll_loss(Builder& b, NamedArgs& names) {
  Arg& var = value_of(names, "var");
  const SymList& sizes = b.tensor(node_of(names, "input")).sizes;
  if (!var.node()) {
    var = b.expression("ones_like(input) * var", names);
  } else if (const SymList own = b.tensor(var).sizes; own != sizes) {
    // `var` has one variance for each row: either its last dimension is missing or has size 1.
    if (own == SymList(sizes.begin(), sizes.end() - 1))
      var = b.call("aten.unsqueeze.default", {var, -1});
    else if (own.size() != sizes.size() || !own.back().is(1))
      fail("var is of incorrect size");
  }
  // The clamped variance has the gradient of the variance itself.
  names.emplace_back("bounded", b.expression("var + detach(clamp_min(var, eps) - var)", names));
  Arg losses = b.expression("aten.mul.Scalar(log(bounded) + pow(input - target, 2) / bounded, 0.5)", names);
  if (truth(names, "full"))
    losses = b.expression("losses + c", {{"losses", losses}, {"c", 0.5 * std::log(2 * std::numbers::pi)}});
  return reduced(b, names, losses);
}

/// Only the default distance function is supported.
Arg triplet_margin_with_distance_loss(Builder& b, NamedArgs& names) {
  if (!value_of(names, "distance_function").is_none())
    fail_unsupported("triplet_margin_with_distance_loss with a distance_function");
  names.emplace_back("near", b.expression("pairwise_distance(anchor, positive)", names));
  names.emplace_back("far", b.expression("pairwise_distance(anchor, negative)", names));
  if (truth(names, "swap"))
    value_of(names, "far") = b.expression("minimum(far, pairwise_distance(positive, negative))", names);
  return reduced(b, names, b.expression("clamp_min(near + margin - far, 0)", names));
}

/// Drops whole channels. A tensor of another rank than `batched` has no batch dimension, and gets one for it.
template <std::size_t batched>
Arg channel_dropout(Builder& b, NamedArgs& names) {
  const std::size_t rank = b.tensor(node_of(names, "input")).dim();
  if (batched == 3 && rank != 2 && rank != 3)
    fail(fmt::format("dropout1d: Expected 2D or 3D input, but received a {}D input", rank));
  const std::string_view dropped = truth(names, "inplace") ? "feature_dropout_" : "feature_dropout";
  return b.expression(rank == batched ? fmt::format("{}(input, p, training)", dropped)
                                      : fmt::format("squeeze({}(unsqueeze(input, 0), p, training), 0)", dropped),
                      names);
}

constexpr PythonSpecial nn_rows[] = {
    {"torch.nn.functional.dropout1d", channel_dropout<3>},
    {"torch.nn.functional.dropout3d", channel_dropout<5>},
    {"torch.nn.functional.interpolate", interpolate},
    {"torch.nn.functional.upsample", upsample},
    {"torch.nn.functional.upsample_nearest", upsample},
    {"torch.nn.functional.upsample_bilinear", upsample_bilinear},
    {"torch.nn.functional.fractional_max_pool2d", fractional_max_pool<2>},
    {"torch.nn.functional.fractional_max_pool3d", fractional_max_pool<3>},
    {"torch.nn.functional.local_response_norm", local_response_norm},
    {"torch.nn.functional.gumbel_softmax", gumbel_softmax},
    {"torch.nn.functional.grid_sample", grid_sample},
    {"torch.nn.functional.affine_grid", affine_grid},
    {"torch.nn.functional.max_unpool1d", max_unpool<1>},
    {"torch.nn.functional.max_unpool2d", max_unpool<2>},
    {"torch.nn.functional.max_unpool3d", max_unpool<3>},
    {"torch.nn.functional.lp_pool1d", lp_pool<1>},
    {"torch.nn.functional.lp_pool2d", lp_pool<2>},
    {"torch.nn.functional.lp_pool3d", lp_pool<3>},
    {"torch.nn.functional.multilabel_soft_margin_loss", multilabel_soft_margin_loss},
    {"torch.nn.functional.gaussian_nll_loss", gaussian_nll_loss},
    {"torch.nn.functional.triplet_margin_with_distance_loss", triplet_margin_with_distance_loss},
    {"torch.nn.functional.multi_head_attention_forward", multi_head_attention_forward},
};

}  // namespace

std::span<const PythonSpecial> nn_specials() {
  return nn_rows;
}

}  // namespace partita
