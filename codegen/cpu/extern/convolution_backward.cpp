// Gradients of convolutions.
#include <algorithm>

#include "codegen/cpu/extern/convolution_columns.h"
#include "codegen/cpu/extern/convolution_taps.h"
#include "codegen/cpu/extern/direct.h"
#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/where_finite.h"
#include "codegen/cpu/extern/winograd.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

using dnnl::algorithm;

/// Steps that run one after another.
class StepsInTurn final : public ExternStep {
 public:
  Status run(std::byte* const* buffers) override {
    for (const auto& step : steps) TRY_DO(step->run(buffers));
    return {};
  }
  std::vector<std::unique_ptr<ExternStep>> steps;
};

/// A call and its operands for oneDNN. Errors of its functions are dnnl::error.
template <class Of>
struct Gradients {
  int threads;
  ConvolutionArguments g;
  ConcreteView grad, input, kernel;
  dnnl::memory::desc grad_desc, input_desc, kernel_desc;

  std::int64_t window() const {
    std::int64_t taps = 1;
    for (std::size_t d = kernel.sizes.size() - (input.sizes.size() - 2); d < kernel.sizes.size(); ++d)
      taps *= kernel.sizes[d];
    return taps;
  }
  /// Products that are added up for an element of the gradient by the weight.
  std::int64_t pixels() const {
    const ConcreteView& image = g.transposed ? input : grad;
    std::int64_t pixels = image.sizes[0];
    for (std::size_t d = 2; d < image.sizes.size(); ++d) pixels *= image.sizes[d];
    return pixels;
  }

  /// The gradients' primitives are made in the light of a forward one.
  typename Of::Forward::primitive_desc forward(algorithm by) const {
    return {{dnnl::prop_kind::forward_training, by, any_layout(input), any_layout(kernel), any_layout(grad), g.strides,
             g.dilation, g.padding, g.after},
            cpu_engine()};
  }

  std::unique_ptr<OnednnStep> of_input(const ConcreteView& result, const dnnl::memory::desc& result_desc,
                                       std::shared_ptr<PackedWeights> weights, std::string& library) const {
    OnednnThreads limit(threads);
    const auto by = Of::direct;
    const typename Of::ByInput::desc desc(by, any_layout(result), any_layout(kernel), any_layout(grad), g.strides,
                                          g.dilation, g.padding, g.after);
    const bool long_sums = sums_long(grad.sizes[1] / g.groups, window());
    const auto pd = with_short_sums(
        long_sums, [&] { return typename Of::ByInput::primitive_desc(desc, cpu_engine(), forward(by)); });
    library = std::string("oneDNN ") + pd.impl_info_str();
    auto step = std::make_unique<OnednnStep>(threads);
    step->calls.push_back(
        {typename Of::ByInput(pd),
         {{DNNL_ARG_DIFF_DST, PrimitiveOperand(grad, grad_desc, pd.diff_dst_desc())},
          {DNNL_ARG_WEIGHTS, PrimitiveOperand(kernel, kernel_desc, pd.weights_desc(), std::move(weights))},
          {DNNL_ARG_DIFF_SRC, PrimitiveOperand(result, result_desc, pd.diff_src_desc()), true}}});
    return step;
  }

  struct OfWeight {
    ConcreteView weight;
    std::optional<ConcreteView> bias;
    dnnl::memory::desc weight_desc;
    std::optional<dnnl::memory::desc> bias_desc;
  };
  std::unique_ptr<OnednnStep> of_weight(const OfWeight& results, std::string& library) const {
    OnednnThreads limit(threads);
    const auto by = Of::direct;
    using Backward = typename Of::ByWeight;
    using Desc = typename Backward::desc;
    const auto desc = results.bias ? Desc(by, any_layout(input), any_layout(results.weight), dense(*results.bias),
                                          any_layout(grad), g.strides, g.dilation, g.padding, g.after)
                                   : Desc(by, any_layout(input), any_layout(results.weight), any_layout(grad),
                                          g.strides, g.dilation, g.padding, g.after);
    const auto pd = with_short_sums(is_long_sum(pixels()),
                                    [&] { return typename Backward::primitive_desc(desc, cpu_engine(), forward(by)); });
    library = std::string("oneDNN ") + pd.impl_info_str();
    OnednnStep::Call call{
        Backward(pd),
        {{DNNL_ARG_SRC, PrimitiveOperand(input, input_desc, pd.src_desc())},
         {DNNL_ARG_DIFF_DST, PrimitiveOperand(grad, grad_desc, pd.diff_dst_desc())},
         {DNNL_ARG_DIFF_WEIGHTS, PrimitiveOperand(results.weight, results.weight_desc, pd.diff_weights_desc()), true}}};
    if (results.bias)
      call.arguments.push_back(
          {DNNL_ARG_DIFF_BIAS, PrimitiveOperand(*results.bias, *results.bias_desc, pd.diff_bias_desc()), true});
    auto step = std::make_unique<OnednnStep>(threads);
    step->calls.push_back(std::move(call));
    return step;
  }
};

/// What direct(library) makes, of whose name nobody asks.
MakeStep without_name(std::function<std::unique_ptr<ExternStep>(std::string& library)> direct) {
  return [direct = std::move(direct)] {
    std::string library;
    return direct(library);
  };
}

std::optional<ConcreteView> turned(std::optional<ConcreteView> matrix) {
  if (!matrix) return {};
  std::ranges::reverse(matrix->sizes);
  std::ranges::reverse(matrix->strides);
  return matrix;
}
/// A gradient of a convolution of each pixel by itself, whose weight has these sizes, as a product. Null where oneDNN
/// is to compute it.
Prepared product_of_pixels(ExternContext context, const ConvolutionArguments& g, const ConcreteView& weight,
                           const std::optional<ConcreteView>& left, const std::optional<ConcreteView>& right,
                           const std::optional<ConcreteView>& out) {
  if (!is_of_pixels(g, weight) || !left || !right || !out) return {};
  if (!own_products_are_faster() && !is_long_sum(left->sizes[1])) return {};
  context.work = nullptr;  // what follows is not for one of several steps
  return prepare_product(context, *left, *right, std::nullopt, *out);
}

/// The sums of images over all pixels.
class SumOfPixels final : public ExternStep {
 public:
  SumOfPixels(int threads, ConcreteView pixels, ConcreteView result)
      : threads_(threads), pixels_(std::move(pixels)), result_(std::move(result)) {}

  Status run(std::byte* const* buffers) override {
    // As many parts whatever the threads are, so that results do not depend on them.
    constexpr std::int64_t most_parts = 16;
    const std::int64_t rows = pixels_.sizes[0], channels = pixels_.sizes[1], parts = std::min(most_parts, rows);
    const auto* from = reinterpret_cast<const float*>(pixels_.at(buffers));
    sums_.assign(static_cast<std::size_t>(parts * channels), 0);
    parallel_for(threads_, parts, 1, 1, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t part = first; part < last; ++part) {
        float* sums = sums_.data() + part * channels;
        for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row)
          for (std::int64_t c = 0; c < channels; ++c) sums[c] += from[row * pixels_.strides[0] + c];
      }
    });
    auto* out = reinterpret_cast<float*>(result_.at(buffers));
    for (std::int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (std::int64_t part = 0; part < parts; ++part) sum += sums_[static_cast<std::size_t>(part * channels + c)];
      out[c * result_.strides[0]] = sum;
    }
    return {};
  }

 private:
  int threads_;
  ConcreteView pixels_, result_;
  std::vector<float> sums_;  ///< of the parts
};

/// The gradient of a bias. Null where the channels are not adjacent.
std::unique_ptr<ExternStep> pixels_to_bias(const ExternContext& context, const ConcreteView& grad,
                                           const ConcreteView& result) {
  const auto pixels = matrix_of(grad);
  if (!pixels || pixels->strides[1] != 1 || grad.dtype != DType::Float32 || result.dtype != DType::Float32) return {};
  return std::make_unique<SumOfPixels>(context.threads, *pixels, result);
}

/// What prepare_convolution_backward() is asked for.
struct Wanted {
  ConcreteView grad, input, weight;
  std::optional<ConcreteView> results[3];
};

template <class Of>
Prepared prepare_gradients(const ExternContext& context, const ConvolutionArguments& g, const Wanted& wanted,
                           std::string& why_not) {
  constexpr bool transposed = std::is_same_v<Of, OfTransposed>;
  const auto kernel_of = [&](const ConcreteView& weight) {
    return transposed ? grouped_transposed(weight, g.groups) : grouped(weight, g.groups);
  };
  const auto& [grad, input, weight, results] = wanted;
  const ConcreteView kernel = kernel_of(weight);
  const auto grad_desc = describe(grad), input_desc = describe(input), weight_desc = describe(kernel);
  if (!grad_desc || !input_desc || !weight_desc)
    return refused(why_not, "a dtype, size or stride that oneDNN does not take");
  const Gradients<Of> call{context.threads, g, grad, input, kernel, *grad_desc, *input_desc, *weight_desc};
  auto all = std::make_unique<StepsInTurn>();
  std::string of_input, of_weight;
  if (results[0]) {
    const auto result_desc = describe(*results[0]);
    if (!result_desc) return refused(why_not, "a stride of the result that oneDNN does not take");
    const auto direct = [call, result = *results[0], desc = *result_desc, weights = weights_of(context, weight.buffer)](
                            std::string& library) { return call.of_input(result, desc, weights, library); };
    Prepared own;
    if constexpr (!transposed) {
      own = prepare_winograd(context, g, {grad, weight, std::nullopt, *results[0], true});
      if (!own.step)
        own = product_of_pixels(context, g, weight, matrix_of(grad), matrix_of(weight), matrix_of(*results[0]));
      if (!own.step) own = prepare_depthwise_to_input(context, g, grad, weight, *results[0]);
      if (!own.step)
        if (own = prepare_columns_to_input(context, g, grad, weight, *results[0]); own.step)
          own.step = where_finite(std::move(own.step), *results[0], context.threads, without_name(direct));
    }
    if (!own.step) own = prepare_taps_to_input(context, g, grad, weight, *results[0]);
    if (!own.step) own.step = direct(own.library);
    of_input = own.library;
    all->steps.push_back(std::move(own.step));
  }
  if (results[1]) {
    const ConcreteView result = kernel_of(*results[1]);
    const auto result_desc = describe(result);
    const auto bias_desc = results[2] ? describe(*results[2]) : std::nullopt;
    if (!result_desc || (results[2] && !bias_desc))
      return refused(why_not, "a stride of the result that oneDNN does not take");
    const typename Gradients<Of>::OfWeight made{result, results[2], *result_desc, bias_desc};
    const auto direct = [call, made](std::string& library) { return call.of_weight(made, library); };
    std::unique_ptr<ExternStep> step, fast, bias;
    if (results[2]) bias = pixels_to_bias(context, grad, *results[2]);
    if (bias || !results[2]) {
      Prepared own;
      if constexpr (!transposed) {
        own = product_of_pixels(context, g, *results[1], turned(matrix_of(grad)), matrix_of(input),
                                matrix_of(*results[1]));
        if (!own.step) own = prepare_depthwise_to_weight(context, g, grad, input, *results[1]);
      }
      step = std::move(own.step);
      if (!step) {
        if constexpr (!transposed) own = prepare_columns_to_weight(context, g, grad, input, *results[1]);
        if (!own.step) own = prepare_taps_to_weight(context, g, grad, input, *results[1]);
        fast = std::move(own.step);
      }
      of_weight = own.library;
      if ((step || fast) && bias) all->steps.push_back(std::move(bias));
    }
    if (fast) step = where_finite(std::move(fast), result, context.threads, without_name(direct));
    if (!step) step = direct(of_weight);
    all->steps.push_back(std::move(step));
  }
  const std::string between = of_input.empty() || of_weight.empty() ? "" : ", ";
  return {std::move(all), of_input + between + of_weight};
}

}  // namespace

Prepared prepare_convolution_backward(const ExternContext& context, std::string& why_not) {
  auto grad = context.view(0), input = context.view(1), weight = context.view(2);
  auto mask = context.integers(10);
  if (!grad || !input || !weight || !mask || mask->size() != 3) return refused(why_not, "symbolic sizes");
  auto g = convolution_arguments(context, 4, input->sizes.size() - 2, why_not);
  if (!g) return {};
  Wanted wanted{*grad, *input, *weight, {}};
  for (std::size_t i = 0; i < 3 && i < context.call.results.size(); ++i)
    if ((*mask)[i] && context.call.results[i].buffer >= 0) {
      wanted.results[i] = concrete_view(context.call.results[i]);
      if (!wanted.results[i]) return refused(why_not, "symbolic sizes");
    }
  if (wanted.results[2] && !wanted.results[1])
    return refused(why_not, "a gradient of the bias without that of the weight");
  OnednnThreads limit(context.threads);
  try {
    if (!g->transposed) return prepare_gradients<OfConvolution>(context, *g, wanted, why_not);
    if (input->sizes.size() > 4)
      return refused(why_not, "the gradient of a transposed convolution of three dimensions");
    g->after = transposed_after(*g, *input, *weight, *grad);
    return prepare_gradients<OfTransposed>(context, *g, wanted, why_not);
  } catch (const dnnl::error& e) {
    return refused(why_not, std::string("oneDNN: ") + e.what());
  }
}

}  // namespace partita::codegen
