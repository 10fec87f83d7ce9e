// Convolutions by their loops. A convolution relates a large tensor [images, channels, positions] to a small one: the
// small position o and the position k of the window meet at i = o * stride - padding + k * dilation of the large one.
// Forward sums into the small tensor; its gradient for the input, and a transposed convolution's forward, sum into the
// large one; the gradient for the weight sums over images and small positions.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/matrix/contraction.h"
#include "codegen/cuda/matrix/convolution_window.h"
#include "codegen/cuda/matrix/products.h"

namespace partita::codegen {
namespace {

SymExpr product(const SymList& sizes, std::size_t from) {
  SymExpr n = 1;
  for (std::size_t d = from; d < sizes.size(); ++d) n = n * sizes[d];
  return n;
}

std::string joined(const SymList& sizes, const char* by) {
  std::string out;
  for (const SymExpr size : sizes) out += (out.empty() ? "" : by) + size.str();
  return out;
}

class Convolution {
 public:
  /// `weight`: [small channels, large channels of a group, window]. In a transposed convolution its input is the small
  /// tensor, and the weight has that order, too.
  Convolution(MatrixKernelBuilder& builder, const ConvolutionWindow& window, schedule::PlanView small,
              schedule::PlanView large, schedule::PlanView weight, std::string origin)
      : builder_(builder),
        w_(window),
        small_(std::move(small)),
        large_(std::move(large)),
        weight_(std::move(weight)),
        origin_(std::move(origin)),
        spatial_(weight_.sizes.size() - 2),
        small_channels_(weight_.sizes[0].as_int() / window.groups),
        large_channels_(weight_.sizes[1].as_int()),
        images_(small_.sizes[0]) {}

  /// The small tensor is the result: a row for each image and position, a column for each channel.
  void into_small(const std::optional<schedule::PlanView>& bias) {
    Contraction c = begin("convolution");
    c.m = images_ * product(small_.sizes, 2);
    c.n = small_channels_;
    c.k = large_channels_ * product(weight_.sizes, 2);
    c.a.body = split("m", "image", "o", small_.sizes) + split("k", "channel", "q", weight_.sizes) + meeting() +
               builder_.factor(c.unit, large_, indices("image", "channel", large_channels_, "i"));
    c.b = {split("k", "channel", "q", weight_.sizes) + builder_.factor(c.unit, weight_, weight_indices("n", "channel")),
           true};
    c.a.along_k = large_.strides[1].is(1);
    c.finish = split("m", "image", "o", small_.sizes) +
               builder_.store(small_, indices("image", "n", small_channels_, "o"), with_bias(bias, small_channels_));
    builder_.add(std::move(c));
  }

  /// The large tensor is the result.
  void into_large(const std::optional<schedule::PlanView>& bias) {
    Contraction c = begin("transposed convolution");
    c.m = images_ * product(large_.sizes, 2);
    c.n = large_channels_;
    c.k = small_channels_ * product(weight_.sizes, 2);
    std::string meeting;
    for (std::size_t d = 0; d < spatial_; ++d)
      meeting += fmt::format(
          "    const Index t{0} = i{0} + {1} - q{0} * {2}, o{0} = t{0} / {3};\n"
          "    if (t{0} < 0 || t{0} % {3} != 0 || o{0} >= {4}) return nothing;\n",
          d, w_.padding[d], w_.dilation[d], w_.stride[d], builder_.text(small_.sizes[d + 2]));
    c.a.body = split("m", "image", "i", large_.sizes) + split("k", "channel", "q", weight_.sizes) + meeting +
               builder_.factor(c.unit, small_, indices("image", "channel", small_channels_, "o"));
    c.b.body =
        split("k", "channel", "q", weight_.sizes) + builder_.factor(c.unit, weight_, weight_indices("channel", "n"));
    c.a.along_k = small_.strides[1].is(1);
    c.finish = split("m", "image", "i", large_.sizes) +
               builder_.store(large_, indices("image", "n", large_channels_, "i"), with_bias(bias, large_channels_));
    builder_.add(std::move(c));
  }

  /// The weight is the result: a row for each small channel, a column for each large channel and window position.
  void into_weight() {
    Contraction c = begin("gradient of a convolution's weight");
    c.m = small_channels_;
    c.n = large_channels_ * product(weight_.sizes, 2);
    c.k = images_ * product(small_.sizes, 2);
    c.a = {split("k", "image", "o", small_.sizes) +
               builder_.factor(c.unit, small_, indices("image", "m", small_channels_, "o")),
           true};
    c.b = {split("k", "image", "o", small_.sizes) + split("n", "channel", "q", weight_.sizes) + meeting() +
               builder_.factor(c.unit, large_, indices("image", "channel", large_channels_, "i")),
           true};
    c.finish =
        split("n", "channel", "q", weight_.sizes) + builder_.store(weight_, weight_indices("m", "channel"), "sum");
    builder_.add(std::move(c));
  }

  /// The sums of a tensor's channels.
  void into_bias(const schedule::PlanView& of, const schedule::PlanView& bias) {
    Contraction c = begin("gradient of a convolution's bias");
    c.unit = MatrixUnit::Scalar;
    c.groups = 1;
    c.m = of.sizes[1];
    c.n = 1;
    c.k = of.sizes[0] * product(of.sizes, 2);
    std::vector<std::string> at = {"image", "m"};
    for (std::size_t d = 0; d < spatial_; ++d) at.push_back(fmt::format("o{}", d));
    c.a = {split("k", "image", "o", of.sizes) + builder_.factor(c.unit, of, at), true};
    c.b = {"    return Sum(1);\n", true};
    c.finish = builder_.store(bias, {"m"}, "sum");
    builder_.add(std::move(c));
  }

 private:
  Contraction begin(const char* what) const {
    Contraction c;
    c.what = fmt::format("{} of {}: {} by [{}] with stride {}, padding {}, dilation {}", what, origin_,
                         joined(large_.sizes, " x "), joined(weight_.sizes, ", "), fmt::join(w_.stride, " "),
                         fmt::join(w_.padding, " "), fmt::join(w_.dilation, " "));
    c.dtype = weight_.dtype;
    c.unit = matrix_unit(c.dtype);
    c.groups = w_.groups;
    return c;
  }

  /// Statements that take an index apart into `outer` and a position: o0, o1, ... of a tensor's dimensions from 2 on.
  std::string split(const char* index, const char* outer, const char* position, const SymList& sizes) {
    std::string text, rest = index;
    for (std::size_t d = sizes.size(); d-- > 2;) {
      text += fmt::format("    [[maybe_unused]] const Index {0}{1} = {2} % {3}, {0}{1}_rest = {2} / {3};\n", position,
                          d - 2, rest, builder_.text(sizes[d]));
      rest = fmt::format("{}{}_rest", position, d - 2);
    }
    return text + fmt::format("    [[maybe_unused]] const Index {} = {};\n", outer, rest);
  }

  /// Where small position o and window position q meet; nothing in the padding.
  std::string meeting() {
    std::string text;
    for (std::size_t d = 0; d < spatial_; ++d)
      text += fmt::format(
          "    const Index i{0} = o{0} * {1} - {2} + q{0} * {3};\n    if (i{0} < 0 || i{0} >= {4}) return nothing;\n",
          d, w_.stride[d], w_.padding[d], w_.dilation[d], builder_.text(large_.sizes[d + 2]));
    return text;
  }

  std::vector<std::string> indices(const char* image, const char* channel, std::int64_t channels,
                                   const char* position) const {
    std::vector<std::string> out = {image, in_group(channel, channels)};
    for (std::size_t d = 0; d < spatial_; ++d) out.push_back(fmt::format("{}{}", position, d));
    return out;
  }

  std::vector<std::string> weight_indices(const char* small_channel, const char* large_channel) const {
    std::vector<std::string> out = {in_group(small_channel, small_channels_), large_channel};
    for (std::size_t d = 0; d < spatial_; ++d) out.push_back(fmt::format("q{}", d));
    return out;
  }

  std::string in_group(const std::string& channel, std::int64_t channels) const {
    return w_.groups == 1 ? channel : fmt::format("(g * {} + {})", channels, channel);
  }

  std::string with_bias(const std::optional<schedule::PlanView>& bias, std::int64_t channels) {
    return bias ? "sum + " + builder_.number(*bias, {in_group("n", channels)}) : "sum";
  }

  MatrixKernelBuilder& builder_;
  const ConvolutionWindow& w_;
  schedule::PlanView small_, large_, weight_;
  std::string origin_;
  std::size_t spatial_;
  std::int64_t small_channels_, large_channels_;  ///< of one group
  SymExpr images_;
};

bool fits(std::initializer_list<const schedule::PlanView*> views, const schedule::PlanView& weight,
          std::string& why_not) {
  const std::size_t rank = weight.sizes.size();
  for (const schedule::PlanView* v : views)
    if (v->dtype != weight.dtype || sum_type(v->dtype).empty() || v->sizes.size() != rank || rank < 3) {
      why_not = "a dtype or rank that kernels of convolutions do not take";
      return false;
    }
  if (std::ranges::all_of(weight.sizes, [](SymExpr size) { return size.is_int(); })) return true;
  why_not = "a weight of symbolic sizes";
  return false;
}

}  // namespace

std::optional<MatrixKernel> convolution_kernel(const ExternContext& context, const MatrixNames& names,
                                               std::string& why_not) {
  const auto input = tensor_view(context, 0), weight = tensor_view(context, 1), bias = tensor_view(context, 2);
  const schedule::PlanView& out = context.call.results[0];
  why_not = "symbolic numbers";
  if (!input || !weight) return std::nullopt;
  const auto window = convolution_window(context, 3, weight->sizes.size() - 2);
  if (!window) return std::nullopt;
  if (!fits({&*input, &out}, *weight, why_not)) return std::nullopt;
  if (bias && bias->dtype != weight->dtype) {
    why_not = "a bias of another dtype";
    return std::nullopt;
  }
  why_not.clear();
  MatrixKernelBuilder builder(context, names);
  if (window->transposed)
    Convolution(builder, *window, *input, out, *weight, context.call.origin).into_large(bias);
  else
    Convolution(builder, *window, out, *input, *weight, context.call.origin).into_small(bias);
  return builder.build(why_not);
}

std::optional<MatrixKernel> convolution_backward_kernel(const ExternContext& context, const MatrixNames& names,
                                                        std::string& why_not) {
  const auto grad = tensor_view(context, 0), input = tensor_view(context, 1), weight = tensor_view(context, 2);
  why_not = "symbolic numbers";
  if (!grad || !input || !weight) return std::nullopt;
  const auto window = convolution_window(context, 4, weight->sizes.size() - 2);
  if (!window) return std::nullopt;
  std::optional<schedule::PlanView> results[3];
  for (std::size_t i = 0; i < 3; ++i)
    if (wants_gradient(context, i)) results[i] = context.call.results[i];
  if (!fits({&*grad, &*input}, *weight, why_not)) return std::nullopt;
  for (const auto& result : results)
    if (result && result->dtype != weight->dtype) {
      why_not = "gradients of another dtype";
      return std::nullopt;
    }
  why_not.clear();
  MatrixKernelBuilder builder(context, names);
  const bool transposed = window->transposed;
  const auto with = [&](const schedule::PlanView& given_input, const schedule::PlanView& given_weight) {
    return Convolution(builder, *window, transposed ? given_input : *grad, transposed ? *grad : given_input,
                       given_weight, context.call.origin);
  };
  if (results[0]) {
    if (transposed)
      with(*results[0], *weight).into_small(std::nullopt);
    else
      with(*results[0], *weight).into_large(std::nullopt);
  }
  if (results[1]) with(*input, *results[1]).into_weight();
  if (results[2]) with(*input, *weight).into_bias(*grad, *results[2]);
  return builder.build(why_not);
}

}  // namespace partita::codegen
