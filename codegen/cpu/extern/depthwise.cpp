// Depthwise convolutions of 3x3, with a kernel of our own.
#include "codegen/cpu/extern/depthwise.h"

#include <algorithm>

#include "codegen/cpu/extern/depthwise_kernel.h"
#include "codegen/cpu/extern/row_blocks.h"

namespace partita::codegen {
namespace {

/// Null where the processor has none.
const DepthwiseKernel* depthwise() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v4")) return &depthwise_avx512;
#endif
  return nullptr;
}

class DepthwiseStep final : public RowBlocksStep {
 public:
  DepthwiseStep(const DepthwiseKernel& kernel, const ExternContext& context, const DepthwiseProblem& problem,
                const ConcreteView& input, const ConcreteView& weight, const std::optional<ConcreteView>& bias,
                const ConcreteView& out, std::vector<RowBlock> blocks)
      : RowBlocksStep(context.threads, out, std::move(blocks)),
        kernel_(kernel),
        problem_(problem),
        input_(input),
        weight_(weight),
        bias_(bias),
        fixed_(context.fixed(weight.buffer)),
        packed_(static_cast<std::size_t>(9 * problem.channels)),
        zeros_(static_cast<std::size_t>(problem.channels)) {}

 protected:
  std::size_t begin(std::byte* const* buffers) override {
    pack(reinterpret_cast<const float*>(weight_.at(buffers)));
    problem_.bias = bias_ ? reinterpret_cast<const float*>(bias_->at(buffers)) : zeros_.data();
    at_ = reinterpret_cast<const float*>(input_.at(buffers));
    return 0;
  }
  void compute(const RowBlock& b, std::byte*) override {
    kernel_.run(problem_, at_ + b.image * input_.strides[0], b.first, b.rows, image(b), register_work(b));
  }

 private:
  void pack(const float* weight) {
    if (fixed_ && weight == packed_from_) return;
    packed_from_ = weight;
    const Sizes& s = weight_.strides;
    for (std::int64_t c = 0; c < problem_.channels; ++c)
      for (std::int64_t i = 0; i < 9; ++i)
        packed_[static_cast<std::size_t>(i * problem_.channels + c)] = weight[c * s[0] + i / 3 * s[2] + i % 3 * s[3]];
    problem_.weights = packed_.data();
  }

  const DepthwiseKernel& kernel_;
  DepthwiseProblem problem_;
  ConcreteView input_, weight_;
  std::optional<ConcreteView> bias_;
  bool fixed_;
  std::vector<float> packed_, zeros_;
  const float* packed_from_ = nullptr;
  const float* at_ = nullptr;  ///< the input
};

}  // namespace

Prepared prepare_depthwise(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                           const ConcreteView& weight, const std::optional<ConcreteView>& bias,
                           const ConcreteView& out) {
  const DepthwiseKernel* found = depthwise();
  if (!found || input.sizes.size() != 4 || out.sizes[0] * out.sizes[2] * out.sizes[3] == 0) return {};
  const std::int64_t channels = input.sizes[1];
  if (g.groups != channels || weight.sizes != Sizes{channels, 1, 3, 3} || channels < 16) return {};
  if (g.padding[0] < 0 || g.padding[1] < 0 || g.strides[1] > 2 || g.dilation[0] != 0 || g.dilation[1] != 0) return {};
  for (const ConcreteView* v : {&input, &weight, &out})
    if (v->dtype != DType::Float32) return {};
  if (input.strides[1] != 1 || out.strides[1] != 1) return {};
  if (bias && (bias->dtype != DType::Float32 || bias->strides[0] != 1)) return {};
  DepthwiseProblem p;
  p.channels = channels;
  p.height = input.sizes[2];
  p.width = input.sizes[3];
  p.out_height = out.sizes[2];
  p.out_width = out.sizes[3];
  p.stride_y = g.strides[0];
  p.stride_x = g.strides[1];
  p.top = g.padding[0];
  p.left = g.padding[1];
  p.in_row = input.strides[2];
  p.in_pixel = input.strides[3];
  p.out_row = out.strides[2];
  p.out_pixel = out.strides[3];
  constexpr std::int64_t second_cache = 1 << 18;  // a good part of a core's
  const std::int64_t bytes = (p.height * p.width + p.out_height * p.out_width) * channels * 4;
  auto step = std::make_unique<DepthwiseStep>(
      *found, context, p, input, weight, bias, out,
      share_rows(out.sizes[0], p.out_height, 1, (bytes - 1) / second_cache + 1, context.threads));
  Prepared prepared{nullptr, std::string("Partita ") + found->name};
  prepared.work = step->take_work(context.work, prepared.does_work);
  prepared.step = std::move(step);
  return prepared;
}

}  // namespace partita::codegen
