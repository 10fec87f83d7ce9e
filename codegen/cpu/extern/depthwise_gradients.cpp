// Gradients of depthwise convolutions, with kernels of our own.
#include <algorithm>

#include "codegen/cpu/extern/direct.h"
#include "codegen/cpu/extern/direct_kernel.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

/// Null where the processor has none.
const DepthwiseGradients* depthwise_kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v4")) return &depthwise_gradients_avx512;
  if (__builtin_cpu_supports("x86-64-v3")) return &depthwise_gradients_avx2;
#endif
  return nullptr;
}

/// `input` and `out`: images of the input's and of the result's sizes, or their gradients.
bool fits_depthwise(const ConvolutionArguments& g, const ConcreteView& input, const ConcreteView& weight,
                    const ConcreteView& out) {
  for (const ConcreteView* v : {&input, &weight, &out})
    if (v->dtype != DType::Float32 || v->sizes.size() != 4 || std::ranges::count(v->sizes, 0) != 0) return false;
  const bool depthwise = g.groups > 1 && weight.sizes[0] == g.groups && weight.sizes[1] == 1;
  const auto negative = [](std::int64_t n) { return n < 0; };
  return depthwise_kernel() && depthwise && input.strides[1] == 1 && out.strides[1] == 1 &&
         std::ranges::none_of(g.padding, negative);
}

class ToInput final : public ExternStep {
 public:
  ToInput(int threads, const DirectProblem& problem, const ConcreteView& grad, const ConcreteView& weight,
          const ConcreteView& result)
      : threads_(threads), problem_(problem), grad_(grad), weight_(weight), result_(result) {}

  Status run(std::byte* const* buffers) override {
    pack(reinterpret_cast<const float*>(weight_.at(buffers)));
    const auto* grad = reinterpret_cast<const float*>(grad_.at(buffers));
    auto* out = reinterpret_cast<float*>(result_.at(buffers));
    const std::int64_t height = problem_.height;
    parallel_for(threads_, result_.sizes[0] * height, 1, 1, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t row = first; row < last; ++row)
        depthwise_kernel()->to_input(problem_, grad + row / height * grad_.strides[0], row % height, 1,
                                     out + row / height * result_.strides[0]);
    });
    return {};
  }

 private:
  void pack(const float* weight) {
    const Sizes& s = weight_.strides;
    packed_.clear();
    for (std::int64_t ky = 0; ky < problem_.window_height; ++ky)
      for (std::int64_t kx = 0; kx < problem_.window_width; ++kx)
        for (std::int64_t c = 0; c < problem_.groups; ++c) packed_.push_back(weight[c * s[0] + ky * s[2] + kx * s[3]]);
    problem_.packed = packed_.data();
  }

  int threads_;
  DirectProblem problem_;
  ConcreteView grad_, weight_, result_;
  std::vector<float> packed_;
};

class ToWeight final : public ExternStep {
 public:
  ToWeight(int threads, const DirectProblem& problem, const ConcreteView& grad, const ConcreteView& input,
           const ConcreteView& result)
      : threads_(threads), problem_(problem), grad_(grad), input_(input), result_(result) {}

  Status run(std::byte* const* buffers) override {
    const auto* grad = reinterpret_cast<const float*>(grad_.at(buffers));
    const auto* input = reinterpret_cast<const float*>(input_.at(buffers));
    // As many parts whatever the threads are, so that results do not depend on them.
    constexpr std::int64_t most_parts = 16;
    const std::int64_t height = problem_.out_height, rows = grad_.sizes[0] * height;
    const std::int64_t parts = std::min(most_parts, rows), taps = problem_.window_height * problem_.window_width;
    const std::int64_t elements = taps * problem_.groups;
    sums_.assign(static_cast<std::size_t>(parts * elements), 0);
    parallel_for(threads_, parts, 1, 1, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t part = first; part < last; ++part)
        for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row)
          depthwise_kernel()->to_weight(problem_, input + row / height * input_.strides[0],
                                        grad + row / height * grad_.strides[0], row % height, 1,
                                        sums_.data() + part * elements);
    });
    auto* out = reinterpret_cast<float*>(result_.at(buffers));
    for (std::int64_t i = 0; i < elements; ++i) {
      float sum = 0;
      for (std::int64_t part = 0; part < parts; ++part) sum += sums_[static_cast<std::size_t>(part * elements + i)];
      const std::int64_t tap = i / problem_.groups, ky = tap / problem_.window_width, kx = tap % problem_.window_width;
      out[i % problem_.groups * result_.strides[0] + ky * result_.strides[2] + kx * result_.strides[3]] = sum;
    }
    return {};
  }

 private:
  int threads_;
  DirectProblem problem_;
  ConcreteView grad_, input_, result_;
  std::vector<float> sums_;  ///< of the parts
};

}  // namespace

Prepared prepare_depthwise_to_input(const ExternContext& context, const ConvolutionArguments& g,
                                    const ConcreteView& grad, const ConcreteView& weight, const ConcreteView& result) {
  if (!fits_depthwise(g, result, weight, grad)) return {};
  return {std::make_unique<ToInput>(context.threads, problem_of(g, result, weight, grad), grad, weight, result),
          std::string("Partita ") + depthwise_kernel()->name};
}

Prepared prepare_depthwise_to_weight(const ExternContext& context, const ConvolutionArguments& g,
                                     const ConcreteView& grad, const ConcreteView& input, const ConcreteView& result) {
  if (!fits_depthwise(g, input, result, grad)) return {};
  return {std::make_unique<ToWeight>(context.threads, problem_of(g, input, result, grad), grad, input, result),
          std::string("Partita ") + depthwise_kernel()->name};
}

}  // namespace partita::codegen
