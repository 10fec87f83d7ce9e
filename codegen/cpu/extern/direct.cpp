// Convolutions whose results depend on few channels each, with kernels of our own.
#include "codegen/cpu/extern/direct.h"

#include <algorithm>

#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/row_blocks.h"

namespace partita::codegen {
namespace {

/// Null where the processor has none for the problem.
const DirectKernel* kernel_for(const DirectProblem& problem) {
#ifdef __x86_64__
  const bool avx512 = __builtin_cpu_supports("x86-64-v4");
  if (!avx512 && !__builtin_cpu_supports("x86-64-v3")) return nullptr;
  for (const DirectKernel* kernel :
       {avx512 ? &depthwise_avx512 : &depthwise_avx2, avx512 ? &few_channels_avx512 : &few_channels_avx2})
    if (kernel->takes(problem)) return kernel;
#endif
  return nullptr;
}

class DirectStep final : public RowBlocksStep {
 public:
  DirectStep(const DirectKernel& kernel, const ExternContext& context, const DirectProblem& problem,
             const ConcreteView& input, const ConcreteView& weight, const std::optional<ConcreteView>& bias,
             const ConcreteView& out, std::vector<RowBlock> blocks)
      : RowBlocksStep(context.threads, out, std::move(blocks)),
        kernel_(kernel),
        problem_(problem),
        input_(input),
        weight_(weight),
        bias_(bias),
        fixed_(context.fixed(weight.buffer)),
        offsets_(offsets_of(problem)),
        zeros_(bias ? 0 : static_cast<std::size_t>(weight.sizes[0])) {}

 protected:
  void begin(std::byte* const* buffers) override {
    pack(reinterpret_cast<const float*>(weight_.at(buffers)));
    problem_.offsets = offsets_.data();
    problem_.bias = bias_ ? reinterpret_cast<const float*>(bias_->at(buffers)) : zeros_.data();
    at_ = reinterpret_cast<const float*>(input_.at(buffers));
  }
  void compute(const RowBlock& b, std::byte*) override {
    kernel_.run(problem_, at_ + b.image * input_.strides[0], b.first, b.rows, image(b), register_work(b));
  }

 private:
  static std::vector<std::int64_t> offsets_of(const DirectProblem& p) {
    std::vector<std::int64_t> offsets;
    for (std::int64_t ky = 0; ky < p.window_height; ++ky)
      for (std::int64_t kx = 0; kx < p.window_width; ++kx)
        for (std::int64_t c = 0; c < p.in_channels; ++c)
          offsets.push_back(ky * p.dilation_y * p.in_row + kx * p.dilation_x * p.in_pixel + c * p.in_channel);
    return offsets;
  }

  void pack(const float* weight) {
    if (fixed_ && weight == packed_from_) return;
    packed_from_ = weight;
    packed_.assign(static_cast<std::size_t>(kernel_.packed_elements(problem_)), 0);
    kernel_.pack(problem_, weight, weight_.strides.data(), packed_.data());
    problem_.packed = packed_.data();
  }

  const DirectKernel& kernel_;
  DirectProblem problem_;
  ConcreteView input_, weight_;
  std::optional<ConcreteView> bias_;
  bool fixed_;
  std::vector<std::int64_t> offsets_;
  std::vector<float> zeros_, packed_;
  const float* packed_from_ = nullptr;
  const float* at_ = nullptr;  ///< the input
};

}  // namespace

DirectProblem problem_of(const ConvolutionArguments& g, const ConcreteView& input, const ConcreteView& weight,
                         const ConcreteView& out) {
  DirectProblem p;
  p.groups = g.groups;
  p.in_channels = weight.sizes[1];
  p.out_channels = weight.sizes[0] / g.groups;
  p.window_height = weight.sizes[2];
  p.window_width = weight.sizes[3];
  p.height = input.sizes[2];
  p.width = input.sizes[3];
  p.out_height = out.sizes[2];
  p.out_width = out.sizes[3];
  p.stride_y = g.strides[0];
  p.stride_x = g.strides[1];
  p.dilation_y = g.dilation[0] + 1;
  p.dilation_x = g.dilation[1] + 1;
  p.top = g.padding[0];
  p.left = g.padding[1];
  p.in_channel = input.strides[1];
  p.in_row = input.strides[2];
  p.in_pixel = input.strides[3];
  p.out_row = out.strides[2];
  p.out_pixel = out.strides[3];
  return p;
}

Prepared prepare_direct(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& input,
                        const ConcreteView& weight, const std::optional<ConcreteView>& bias, const ConcreteView& out) {
  if (input.sizes.size() != 4 || out.sizes[0] * out.sizes[2] * out.sizes[3] == 0 || g.groups < 1) return {};
  if (std::ranges::any_of(g.padding, [](std::int64_t n) { return n < 0; })) return {};
  for (const ConcreteView* v : {&input, &weight, &out})
    if (v->dtype != DType::Float32) return {};
  if (out.strides[1] != 1 || (bias && (bias->dtype != DType::Float32 || bias->strides[0] != 1))) return {};
  DirectProblem p = problem_of(g, input, weight, out);
  const DirectKernel* found = kernel_for(p);
  if (!found) return {};
  constexpr std::int64_t second_cache = 1 << 18;  // a good part of a core's
  const std::int64_t bytes = (input.sizes[1] * p.height * p.width + out.sizes[1] * p.out_height * p.out_width) * 4;
  auto step = std::make_unique<DirectStep>(
      *found, context, p, input, weight, bias, out,
      share_rows(out.sizes[0], p.out_height, 1, (bytes - 1) / second_cache + 1, context.threads));
  Prepared prepared{nullptr, std::string("Partita ") + found->name};
  prepared.work = step->take_work(context.work, prepared.does_work);
  prepared.step = std::move(step);
  return prepared;
}

}  // namespace partita::codegen
