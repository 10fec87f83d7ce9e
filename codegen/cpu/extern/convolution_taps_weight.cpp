// The gradient of a convolution's weight, tap by tap: the sum over pixels is the depth of a product.
#include <algorithm>

#include "codegen/cpu/extern/convolution_taps.h"
#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

constexpr std::int64_t most_pixels = 256;  ///< that are summed in registers; of both images they stay in cache

class TapsToWeight final : public ExternStep {
 public:
  TapsToWeight(const ProductKernel& kernel, int threads, const ConvolutionArguments& g, ConcreteView grad,
               ConcreteView pixels, ConcreteView input, ConcreteView result)
      : kernel_(kernel),
        threads_(threads),
        g_(g),
        grad_(std::move(grad)),
        pixels_(std::move(pixels)),
        input_(std::move(input)),
        result_(std::move(result)) {
    constexpr std::int64_t least_results = 24;
    while (blocks_ * taps() % threads != 0 && results() / (blocks_ + 1) >= least_results) ++blocks_;
  }

  Status run(std::byte* const* buffers) override {
    // Kept for other gradients on this thread, as sum() keeps its matrices: fresh memory costs more than to fill it.
    static thread_local std::vector<float> sums;
    sums.resize(static_cast<std::size_t>(taps() * results() * channels()));
    sums_ = sums.data();
    const auto* grad = reinterpret_cast<const float*>(pixels_.at(buffers));
    const auto* input = reinterpret_cast<const float*>(input_.at(buffers));
    parallel_for(threads_, taps() * blocks_, 1, 1,
                 [&](std::int64_t begin, std::int64_t end, int) { sum(grad, input, begin, end); });
    auto* out = reinterpret_cast<float*>(result_.at(buffers));
    parallel_for(threads_, results(), 1, 1,
                 [&](std::int64_t first, std::int64_t last, int) { store(first, last, out); });
    return {};
  }

 private:
  std::int64_t taps() const { return result_.sizes[2] * result_.sizes[3]; }
  std::int64_t results() const { return result_.sizes[0]; }
  std::int64_t channels() const { return result_.sizes[1]; }

  /// Tasks [begin, end): a tap and a block of results each.
  void sum(const float* grad, const float* input, std::int64_t begin, std::int64_t end) {
    static thread_local std::vector<float> left, right;
    const std::int64_t all = pixels_.sizes[0], results = this->results(), channels = this->channels();
    const std::int64_t panels = panels_of(kernel_, channels);
    for (std::int64_t first = 0; first < all; first += most_pixels) {
      const std::int64_t n = std::min(most_pixels, all - first);
      left.resize(static_cast<std::size_t>(results * n));
      right.resize(static_cast<std::size_t>(kernel_.packed_elements(n, channels)));
      kernel_.transpose(grad + first * pixels_.strides[0], pixels_.strides[0], results, n, left.data(), n);
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t tap = task / blocks_, block = task % blocks_;
        if (task == begin || block == 0) pack(input, tap, first, n, right.data());
        const std::int64_t row = results * block / blocks_, rows = results * (block + 1) / blocks_ - row;
        ProductProblem p{channels, n, left.data() + row * n, right.data()};
        p.out = sums_ + (tap * results + row) * channels;
        p.left_row = n;
        p.added = first == 0 ? nullptr : p.out;
        p.out_row = p.added_row = channels;
        kernel_.run(p, 0, rows, 0, panels);
      }
    }
  }

  /// What a tap reads of the input for pixels [first, first + n) of the result; zeros beside it.
  void pack(const float* input, std::int64_t tap, std::int64_t first, std::int64_t n, float* packed) const {
    const std::int64_t channels = this->channels(), width = kernel_.panel_columns;
    const std::int64_t out_height = grad_.sizes[2], out_width = grad_.sizes[3];
    const std::int64_t down = tap / result_.sizes[3] * (g_.dilation[0] + 1) - g_.padding[0];
    const std::int64_t right = tap % result_.sizes[3] * (g_.dilation[1] + 1) - g_.padding[1];
    const std::int64_t of_panel = channels > width ? kernel_.place(n, channels, 0, width) : 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t pixel = first + i, image = pixel / (out_height * out_width);
      const std::int64_t y = pixel / out_width % out_height * g_.strides[0] + down;
      const std::int64_t x = pixel % out_width * g_.strides[1] + right;
      const bool within = y >= 0 && y < input_.sizes[2] && x >= 0 && x < input_.sizes[3];
      const float* from = input + image * input_.strides[0] + y * input_.strides[2] + x * input_.strides[3];
      for (std::int64_t panel = 0; panel < channels; panel += width) {
        const std::int64_t filled = std::min(width, channels - panel), of_row = kernel_.packed_elements(1, filled);
        float* const to = packed + panel / width * of_panel + i * of_row;
        std::fill(within ? std::copy_n(from + panel, filled, to) : to, to + of_row, 0.0F);
      }
    }
  }

  void store(std::int64_t first, std::int64_t last, float* out) const {
    const Sizes& s = result_.strides;
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t c = 0; c < channels(); ++c) {
        const float* from = sums_ + r * channels() + c;
        for (std::int64_t tap = 0; tap < taps(); ++tap)
          out[r * s[0] + c * s[1] + tap / result_.sizes[3] * s[2] + tap % result_.sizes[3] * s[3]] =
              from[tap * results() * channels()];
      }
  }

  const ProductKernel& kernel_;
  int threads_;
  ConvolutionArguments g_;
  ConcreteView grad_, pixels_;  ///< the gradient, and as a matrix
  ConcreteView input_, result_;
  std::int64_t blocks_ = 1;  ///< of results, which threads share as they share taps
  float* sums_ = nullptr;    ///< [taps, results, channels], of this run
};

}  // namespace

Prepared prepare_taps_to_weight(const ExternContext& context, const ConvolutionArguments& g, const ConcreteView& grad,
                                const ConcreteView& input, const ConcreteView& result) {
  if (grad.sizes.size() == 3)
    return prepare_taps_to_weight(context, with_height(g), with_height(grad), with_height(input), with_height(result));
  for (const ConcreteView* v : {&grad, &input, &result})
    if (v->dtype != DType::Float32 || v->sizes.size() != 4 || std::ranges::count(v->sizes, 0) != 0) return {};
  // Of a transposed convolution the two images change their parts.
  const ConcreteView &few = g.transposed ? input : grad, &many = g.transposed ? grad : input;
  const auto pixels = matrix_of(few);
  constexpr std::int64_t least_channels = 8;
  const bool long_sums = pixels && is_long_sum(pixels->sizes[0]);
  if (!product_kernel() || (!own_products_are_faster() && !long_sums) || g.groups != 1 || many.strides[1] != 1 ||
      many.sizes[1] < least_channels || few.sizes[1] < least_channels || !pixels || pixels->strides[1] != 1)
    return {};
  const ProductKernel& kernel = *product_kernel();
  return {std::make_unique<TapsToWeight>(kernel, context.threads, g, few, *pixels, many, result),
          std::string("Partita ") + kernel.name + " taps"};
}

}  // namespace partita::codegen
