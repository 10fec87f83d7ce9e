// Prepares a convolution's forward by the first that takes it: a product (of pixels, of windows), direct, Winograd,
// columns, taps, blocks of rows, a whole oneDNN primitive. Also the arguments that convolutions share.
#include "codegen/cpu/extern/convolution.h"

#include <algorithm>
#include <span>

#include "codegen/cpu/extern/convolution_columns.h"
#include "codegen/cpu/extern/convolution_taps.h"
#include "codegen/cpu/extern/direct.h"
#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/where_finite.h"
#include "codegen/cpu/extern/winograd.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

/// A vector as a matrix of one row.
std::optional<ConcreteView> as_row(std::optional<ConcreteView> vector) {
  if (!vector) return vector;
  vector->sizes.insert(vector->sizes.begin(), 1);
  vector->strides.insert(vector->strides.begin(), 0);
  return vector;
}

/// A convolution of each pixel by itself as a product. Where oneDNN's convolutions are as good, that is faster only if
/// both images stay in the second cache, or if it does the work that follows in registers. Their long sums are not as
/// good.
Prepared prepare_pixels(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                        const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out) {
  constexpr std::int64_t second_cache = 1 << 20;  // a good part of a core's
  if (!is_of_pixels(g, weight)) return {};
  const auto left = matrix_of(input), result = matrix_of(out);
  if (!left || !result) return {};
  const std::int64_t values = left->sizes[0] * (left->sizes[1] + result->sizes[1]);
  const bool in_registers = context.work && context.work->simple;
  const bool small = values * static_cast<std::int64_t>(sizeof(float)) <= second_cache;
  if (!small && !in_registers && !own_products_are_faster() && !has_long_sums(weight)) return {};
  // Each thread then reads all weights, which takes as long as 8 rows.
  const bool by_rows = out.sizes.size() == 4 && result->sizes[0] >= 80 * (context.threads - 1);
  ConcreteView right = weight;
  right.sizes = {weight.sizes[1], weight.sizes[0]};
  right.strides = {weight.strides[1], weight.strides[0]};
  return prepare_product(context, *left, right, as_row(bias), *result, by_rows ? &out : nullptr);
}

/// A convolution of one dimension without zeros around, whose windows each lie in one piece of memory: they are the
/// rows of a matrix, and overlap.
Prepared prepare_windows(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                         const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out) {
  if (input.sizes.size() != 3 || g.groups != 1 || g.padding[0] != 0 || g.after[0] != 0 || g.dilation[0] != 0) return {};
  const auto pixels = matrix_of(input), result = matrix_of(out);
  const std::int64_t channels = input.sizes[1], taps = weight.sizes[2], stride = g.strides[0];
  // Windows of several images are equally far apart only where none reaches over what the next one begins with.
  if (!pixels || !result || pixels->strides[0] != channels || pixels->strides[1] != 1 ||
      (input.sizes[0] != 1 && input.sizes[2] != out.sizes[2] * stride))
    return {};
  ConcreteView windows = *pixels, right = weight;
  windows.sizes = {result->sizes[0], taps * channels};
  windows.strides = {stride * channels, 1};
  right.sizes = {taps, channels, weight.sizes[0]};
  right.strides = {weight.strides[2], weight.strides[1], weight.strides[0]};
  return prepare_product(context, windows, right, as_row(bias), *result);
}

/// A convolution as a whole by oneDNN, `Of` its primitives.
template <class Of>
struct DirectConvolution {
  int threads;
  ConvolutionArguments g;
  ConcreteView input, kernel;
  std::optional<ConcreteView> bias;
  ConcreteView out;
  memory::desc input_desc, kernel_desc, out_desc;
  std::optional<memory::desc> bias_desc;
  std::shared_ptr<PackedWeights> weights;
  bool has_long_sums = false;

  /// Errors are dnnl::error.
  std::unique_ptr<ExternStep> step(std::string& library) const {
    OnednnThreads limit(threads);
    const auto kind = dnnl::prop_kind::forward_inference;
    using Forward = typename Of::Forward;
    using Desc = typename Forward::desc;
    const auto desc = bias ? Desc(kind, Of::direct, any_layout(input), any_layout(kernel), dense(*bias),
                                  any_layout(out), g.strides, g.dilation, g.padding, g.after)
                           : Desc(kind, Of::direct, any_layout(input), any_layout(kernel), any_layout(out), g.strides,
                                  g.dilation, g.padding, g.after);
    const auto pd =
        with_short_sums(has_long_sums, [&] { return typename Forward::primitive_desc(desc, cpu_engine()); });
    library = std::string("oneDNN ") + pd.impl_info_str();
    OnednnStep::Call call{Forward(pd),
                          {{DNNL_ARG_SRC, PrimitiveOperand(input, input_desc, pd.src_desc())},
                           {DNNL_ARG_WEIGHTS, PrimitiveOperand(kernel, kernel_desc, pd.weights_desc(), weights)},
                           {DNNL_ARG_DST, PrimitiveOperand(out, out_desc, pd.dst_desc()), true}}};
    if (bias) call.arguments.push_back({DNNL_ARG_BIAS, PrimitiveOperand(*bias, *bias_desc, pd.bias_desc())});
    auto made = std::make_unique<OnednnStep>(threads);
    made->calls.push_back(std::move(call));
    return made;
  }
};

/// Nullopt, with the reason, for operands that oneDNN does not take. `kernel`: the grouped weight.
template <class Of>
std::optional<DirectConvolution<Of>> direct_convolution(const ExternContext& context, const ConvolutionArguments& g,
                                                        const ConcreteView& input, const ConcreteView& kernel,
                                                        const std::optional<ConcreteView>& bias,
                                                        const ConcreteView& out, std::string& why_not) {
  const auto input_desc = describe(input), kernel_desc = describe(kernel), out_desc = describe(out);
  const auto bias_desc = bias ? describe(*bias) : std::nullopt;
  if (!input_desc || !kernel_desc || !out_desc || (bias && !bias_desc)) {
    why_not = "a dtype, size or stride that oneDNN does not take";
    return std::nullopt;
  }
  return DirectConvolution<Of>{context.threads,
                               g,
                               input,
                               kernel,
                               bias,
                               out,
                               *input_desc,
                               *kernel_desc,
                               *out_desc,
                               bias_desc,
                               weights_of(context, kernel.buffer)};
}

/// The weight of a transposed convolution is [in, out / groups, ...].
Prepared prepare_transposed(const ExternContext& context, ConvolutionArguments g, const ConcreteView& input,
                            const ConcreteView& weight, const std::optional<ConcreteView>& bias,
                            const ConcreteView& out, std::string& why_not) {
  // Of volumes, single sums of products of all taps are further from the result in double than PyTorch's several.
  if (input.sizes.size() > 4) return refused(why_not, "a transposed convolution of three dimensions");
  if (Prepared own = prepare_taps(context, g, input, weight, bias, out); own.step) return own;
  g.after = transposed_after(g, input, weight, out);
  const auto direct =
      direct_convolution<OfTransposed>(context, g, input, grouped_transposed(weight, g.groups), bias, out, why_not);
  if (!direct) return {};
  try {
    std::string library;
    std::unique_ptr<ExternStep> step = direct->step(library);
    return {std::move(step), library};
  } catch (const dnnl::error& e) {
    return refused(why_not, std::string("oneDNN: ") + e.what());
  }
}

}  // namespace

bool is_of_pixels(const ConvolutionArguments& g, const ConcreteView& weight) {
  const auto all = [](std::span<const std::int64_t> list, std::int64_t n) {
    return std::ranges::all_of(list, [&](std::int64_t i) { return i == n; });
  };
  return g.groups == 1 && all(std::span(weight.sizes).subspan(2), 1) && all(g.strides, 1) && all(g.padding, 0) &&
         all(g.after, 0);
}

bool has_long_sums(const ConcreteView& weight) {
  std::int64_t window = 1;
  for (std::size_t d = 2; d < weight.sizes.size(); ++d) window *= weight.sizes[d];
  return sums_long(weight.sizes[1], window);
}

std::optional<ConcreteView> matrix_of(const ConcreteView& images) {
  ConcreteView m = images;
  std::int64_t pixels = 1, distance = 0;
  const auto join = [&](std::size_t d) {
    if (images.sizes[d] != 1 && pixels != 1 && images.strides[d] != pixels * distance) return false;
    if (images.sizes[d] != 1 && pixels == 1) distance = images.strides[d];
    pixels *= images.sizes[d];
    return true;
  };
  for (std::size_t d = images.sizes.size(); d-- > 2;)
    if (!join(d)) return std::nullopt;
  if (!join(0)) return std::nullopt;
  if (pixels == 1) distance = images.sizes[1] * images.strides[1];  // a row by itself lies anywhere
  m.sizes = {pixels, images.sizes[1]};
  m.strides = {distance, images.strides[1]};
  return m;
}

std::optional<ConvolutionArguments> convolution_arguments(const ExternContext& context, std::size_t first,
                                                          std::size_t spatial, std::string& why_not) {
  auto stride = context.integers(first), padding = context.integers(first + 1), dilation = context.integers(first + 2);
  auto transposed = context.number(first + 3), groups = context.number(first + 5);
  const bool known = stride && padding && dilation && transposed && groups;
  if (!known) {
    why_not = "symbolic sizes";
    return std::nullopt;
  }
  ConvolutionArguments g{*stride, *dilation, *padding, {}, static_cast<std::int64_t>(*groups), *transposed != 0};
  for (memory::dims* list : {&g.strides, &g.padding, &g.dilation})
    if (list->size() == 1) list->resize(spatial, (*list)[0]);
  constexpr std::int64_t most = 65535;  // oneDNN's kernels compute addresses from them in 32 bits
  for (const memory::dims* list : {&g.strides, &g.padding, &g.dilation})
    if (std::ranges::any_of(*list, [](std::int64_t n) { return n > most; })) {
      why_not = "strides, padding or dilation beyond 16 bits";
      return std::nullopt;
    }
  for (std::int64_t& d : g.dilation) d -= 1;
  g.after = g.padding;
  const std::vector<std::int64_t>& around = context.call.around;
  for (std::size_t i = 0; i < around.size(); ++i) (i % 2 == 0 ? g.padding : g.after)[spatial - 1 - i / 2] += around[i];
  return g;
}

ConvolutionArguments with_height(ConvolutionArguments of_width) {
  if (of_width.strides.size() != 1) return of_width;
  of_width.strides.insert(of_width.strides.begin(), 1);
  for (auto* zero : {&of_width.dilation, &of_width.padding, &of_width.after}) zero->insert(zero->begin(), 0);
  return of_width;
}

ConcreteView grouped(ConcreteView weight, std::int64_t groups) {
  if (groups == 1) return weight;
  std::int64_t out = weight.sizes[0] / groups;
  weight.sizes[0] = out;
  weight.sizes.insert(weight.sizes.begin(), groups);
  weight.strides.insert(weight.strides.begin(), weight.strides[0] * out);
  return weight;
}

ConcreteView grouped_transposed(const ConcreteView& weight, std::int64_t groups) {
  ConcreteView kernel = grouped(weight, groups);
  const std::size_t in = groups == 1 ? 0 : 1;
  std::swap(kernel.sizes[in], kernel.sizes[in + 1]);
  std::swap(kernel.strides[in], kernel.strides[in + 1]);
  return kernel;
}

memory::dims transposed_after(const ConvolutionArguments& g, const ConcreteView& input, const ConcreteView& weight,
                              const ConcreteView& out) {
  memory::dims after = g.padding;
  for (std::size_t d = 0; d < after.size(); ++d)
    after[d] = (input.sizes[d + 2] - 1) * g.strides[d] + (weight.sizes[d + 2] - 1) * (g.dilation[d] + 1) + 1 -
               out.sizes[d + 2] - g.padding[d];
  return after;
}

memory::desc any_layout(const ConcreteView& view) {
  return memory::desc(view.sizes, onednn_type(view.dtype), memory::format_tag::any);
}

Prepared prepare_convolution(const ExternContext& context, std::string& why_not) {
  auto input = context.view(0), weight = context.view(1), bias = context.view(2);
  auto out = concrete_view(context.call.results[0]);
  if (!input || !weight || !out) return refused(why_not, "symbolic sizes");
  auto g = convolution_arguments(context, 3, input->sizes.size() - 2, why_not);
  if (!g) return {};
  if (g->transposed) return prepare_transposed(context, *g, *input, *weight, bias, *out, why_not);
  if (Prepared own = prepare_pixels(context, *g, *input, *weight, bias, *out); own.step) return own;
  if (Prepared own = prepare_windows(context, *g, *input, *weight, bias, *out); own.step) return own;
  if (Prepared own = prepare_direct(context, *g, *input, *weight, bias, *out); own.step) return own;
  if (Prepared own = prepare_winograd(context, *g, {*input, *weight, bias, *out}); own.step) return own;
  const ConcreteView kernel = grouped(*weight, g->groups);
  auto direct = direct_convolution<OfConvolution>(context, *g, *input, kernel, bias, *out, why_not);
  if (!direct) return {};
  direct->has_long_sums = has_long_sums(*weight);
  OnednnThreads limit(context.threads);
  try {
    std::string library, apart;
    if (Prepared columns = prepare_columns(context, *g, *input, *weight, bias, *out); columns.step) {
      columns.step = where_finite(std::move(columns.step), *out, context.threads, [direct = *direct] {
        std::string name;
        return direct.step(name);
      });
      if (columns.step) return columns;
    }
    if (Prepared own = prepare_taps(context, *g, *input, *weight, bias, *out); own.step) return own;
    if (direct->has_long_sums)
      apart = "blocks of rows would make one long sum for each element";
    else if (Prepared by_rows = prepare_convolution_rows(context, *g, *input, kernel, bias, *out, apart); by_rows.step)
      return by_rows;
    std::unique_ptr<ExternStep> step = direct->step(library);
    return {std::move(step), library, false, "a kernel of its own: " + apart};
  } catch (const dnnl::error& e) {
    return refused(why_not, std::string("oneDNN: ") + e.what());
  }
}

}  // namespace partita::codegen
