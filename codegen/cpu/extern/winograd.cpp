// Convolutions of 3x3 by Winograd's algorithm, with a kernel of our own.
#include "codegen/cpu/extern/winograd.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "codegen/cpu/extern/row_blocks.h"
#include "codegen/cpu/extern/winograd_kernel.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

using dnnl::memory;

/// Null where the processor has none.
const WinogradKernel* winograd() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v4")) return &winograd_avx512;
  if (__builtin_cpu_supports("x86-64-v3")) return &winograd_avx2;
#endif
  return nullptr;
}

class WinogradStep final : public RowBlocksStep {
 public:
  WinogradStep(const WinogradKernel& kernel, const ExternContext& context, const WinogradCall& call,
               const WinogradProblem& problem, std::vector<RowBlock> blocks, std::shared_ptr<PackedWeights> weights)
      : RowBlocksStep(context.threads, call.out, std::move(blocks)),
        kernel_(kernel),
        call_(call),
        problem_(problem),
        weights_(std::move(weights)) {
    const Sizes& s = call.weight.strides;
    plain_ = {nullptr, s[0], s[1], s[2], s[3]};
    if (call.flipped) plain_ = {nullptr, s[1], s[0], -s[2], -s[3]};
  }

 protected:
  void begin(std::byte* const* buffers) override {
    pack(call_.weight.at(buffers));
    if (call_.bias) problem_.bias = reinterpret_cast<const float*>(call_.bias->at(buffers));
    input_ = reinterpret_cast<const float*>(call_.input.at(buffers));
  }
  std::size_t thread_bytes() const override {
    return static_cast<std::size_t>(kernel_.scratch_elements(problem_, most_rows())) * sizeof(float);
  }

  void compute(const RowBlock& b, std::byte* scratch) override {
    const float* input = input_ + b.image * call_.input.strides[0];
    const auto own = reinterpret_cast<float*>(scratch);
    if (!kernel_.run(problem_, input, packed_, b.first, b.rows, image(b), register_work(b), own))
      compute_directly(b, input);
  }

 private:
  /// As sums of products, a row of pixels and a weight after the other: infinities are where they belong.
  void compute_directly(const RowBlock& b, const float* input) {
    float* out = image(b);
    const WinogradProblem& p = problem_;
    const ProductKernel& product = *kernel_.product;
    const std::int64_t elements = product.packed_elements(p.channels, p.results);
    const std::int64_t panels = panels_of(product, p.results);
    {
      const std::lock_guard lock(mutex_);
      if (direct_.empty()) {
        direct_.resize(static_cast<std::size_t>(9 * elements));
        for (std::int64_t y = 0; y < 3; ++y)
          for (std::int64_t x = 0; x < 3; ++x)
            product.pack(plain_.data + y * plain_.row + x * plain_.column, plain_.channel, plain_.result, p.channels,
                         p.results, 0, panels, direct_.data() + (y * 3 + x) * elements);
      }
    }
    for (std::int64_t row = b.first; row < b.first + b.rows; ++row) {
      float* to = out + row * p.out_row;
      for (std::int64_t x = 0; x < p.out_width; ++x)
        for (std::int64_t c = 0; c < p.results; ++c) to[x * p.out_pixel + c] = p.bias ? p.bias[c] : 0;
      for (std::int64_t i = 0; i < 9; ++i) {
        const std::int64_t from_row = row + i / 3 - p.top, shift = i % 3 - p.left;
        const std::int64_t first = std::max<std::int64_t>(0, -shift), last = std::min(p.out_width, p.width - shift);
        if (from_row < 0 || from_row >= p.height || first >= last) continue;
        ProductProblem problem{p.results, p.channels, input + from_row * p.in_row + (first + shift) * p.in_pixel,
                               direct_.data() + i * elements};
        problem.out = to + first * p.out_pixel;
        problem.added = problem.out;
        problem.left_row = p.in_pixel;
        problem.added_row = problem.out_row = p.out_pixel;
        product.run(problem, 0, last - first, 0, panels);
      }
      for (std::int64_t x = 0; x < p.out_width; ++x) finish(out, register_work(b), row * p.out_row + x * p.out_pixel);
    }
  }

  /// Does the work on the channels of a pixel.
  void finish(float* out, const RegisterWork& work, std::int64_t pixel) const {
    for (std::int64_t i = pixel; i < pixel + problem_.results; ++i) {
      if (work.added) out[i] += work.added[i];
      if (!work.clamps) continue;
      if (out[i] < work.low) out[i] = work.low;
      if (out[i] > work.high) out[i] = work.high;
    }
  }

  void pack(std::byte* at) {
    if (weights_ && packed_from_ == at) return;
    plain_.data = reinterpret_cast<const float*>(at);
    if (call_.flipped) plain_.data += 2 * (call_.weight.strides[2] + call_.weight.strides[3]);
    direct_.clear();
    const auto fill = [&](float* to) {
      parallel_for(threads(), problem_.channels, 8, 1, [&](std::int64_t first, std::int64_t last, int) {
        kernel_.pack(problem_, plain_, first, last, to);
      });
    };
    const std::int64_t elements = kernel_.packed_elements(problem_);
    if (weights_) {
      const memory plain(*describe(call_.weight), cpu_engine(), at);
      const memory::desc wanted({elements}, memory::data_type::f32, memory::format_tag::a);
      shared_ =
          weights_->packed(plain, wanted, [&](memory& made) { fill(static_cast<float*>(made.get_data_handle())); });
      packed_ = static_cast<const float*>(shared_->get_data_handle());
      packed_from_ = at;
      return;
    }
    own_.resize(static_cast<std::size_t>(elements));
    fill(own_.data());
    packed_ = own_.data();
  }

  const WinogradKernel& kernel_;
  WinogradCall call_;
  WinogradProblem problem_;
  WinogradWeights plain_;
  std::shared_ptr<PackedWeights> weights_;  ///< null: they change
  std::shared_ptr<memory> shared_;
  std::vector<float> own_;
  const float* packed_ = nullptr;
  const float* input_ = nullptr;
  const void* packed_from_ = nullptr;
  std::mutex mutex_;
  std::vector<float> direct_;  ///< the plain weights, packed for compute_directly(); empty: not needed yet
};

/// So many that a block's tiles stay in the second cache.
std::vector<RowBlock> blocks_of(const WinogradProblem& p, std::int64_t images, int threads) {
  constexpr std::int64_t second_cache = 1 << 19, least_tiles = 32;  // fewer tiles spend their time reading the weights
  const std::int64_t all = ((p.out_height + 1) / 2) * ((p.out_width + 1) / 2);
  const std::int64_t tile_bytes = 16 * (p.channels + p.results) * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t tiles = std::max(least_tiles, second_cache / tile_bytes);
  return share_rows(images, p.out_height, 2, (all + tiles - 1) / tiles, threads);
}

/// Are these images of single precision and kernels of 3x3 side by side, of which Winograd's algorithm takes less time
/// than the direct one, on this processor? `pixels`: of all results, from which on it does.
bool suits_winograd(const ConvolutionArguments& g, const ConcreteView& input, const ConcreteView& kernel,
                    const ConcreteView& out, std::int64_t pixels) {
  const auto all = [](const auto& list, std::int64_t n) {
    return std::ranges::all_of(list, [n](std::int64_t i) { return i == n; });
  };
  if (!winograd() || input.sizes.size() != 4 || kernel.sizes.size() != 4 || kernel.sizes[2] != 3 ||
      kernel.sizes[3] != 3)
    return false;
  if (g.groups != 1 || !all(g.strides, 1) || !all(g.dilation, 0)) return false;
  for (const ConcreteView* v : {&input, &kernel, &out})
    if (v->dtype != DType::Float32 || v->sizes[1] % 16 != 0 || v->sizes[1] == 0) return false;
  return out.sizes[0] * out.sizes[2] * out.sizes[3] >= pixels;
}

}  // namespace

Prepared prepare_winograd(const ExternContext& context, const ConvolutionArguments& g, const WinogradCall& call) {
  const WinogradKernel* found = winograd();
  const bool fixed = context.fixed(call.weight.buffer) && !call.flipped;
  // Below, to transform the weights or to read what is made of them takes longer than is saved.
  const std::int64_t pixels = fixed ? 128 : 400;
  if (!found || !suits_winograd(g, call.input, call.weight, call.out, pixels)) return {};
  if (call.input.strides[1] != 1 || call.out.strides[1] != 1 || call.input.sizes[1] > 1024) return {};
  if (call.bias && (call.bias->dtype != DType::Float32 || call.bias->strides[0] != 1)) return {};
  constexpr std::int64_t most_distance = std::numeric_limits<std::int32_t>::max() / 16;  // gathered by 32 bits
  if (std::ranges::any_of(call.weight.strides, [](std::int64_t s) { return s > most_distance; })) return {};
  if (fixed && !describe(call.weight)) return {};
  WinogradProblem p;
  p.channels = call.input.sizes[1];
  p.results = call.out.sizes[1];
  p.height = call.input.sizes[2];
  p.width = call.input.sizes[3];
  p.out_height = call.out.sizes[2];
  p.out_width = call.out.sizes[3];
  p.top = call.flipped ? 2 - g.padding[0] : g.padding[0];
  p.left = call.flipped ? 2 - g.padding[1] : g.padding[1];
  p.in_row = call.input.strides[2];
  p.in_pixel = call.input.strides[3];
  p.out_row = call.out.strides[2];
  p.out_pixel = call.out.strides[3];
  auto step = std::make_unique<WinogradStep>(*found, context, call, p, blocks_of(p, call.out.sizes[0], context.threads),
                                             fixed ? weights_of(context, call.weight.buffer) : nullptr);
  Prepared prepared{nullptr, std::string("Partita ") + found->name};
  if (!call.flipped) prepared.work = step->take_work(context.work, prepared.does_work);
  prepared.step = std::move(step);
  return prepared;
}

}  // namespace partita::codegen
