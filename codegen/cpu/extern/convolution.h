#pragma once
#include "codegen/cpu/extern/onednn.h"
#include "codegen/cpu/extern/product.h"

namespace partita::codegen {

/// oneDNN's primitives for convolutions and for transposed ones.
struct OfConvolution {
  using Forward = dnnl::convolution_forward;
  using ByInput = dnnl::convolution_backward_data;
  using ByWeight = dnnl::convolution_backward_weights;
  static constexpr auto direct = dnnl::algorithm::convolution_direct;
};
struct OfTransposed {
  using Forward = dnnl::deconvolution_forward;
  using ByInput = dnnl::deconvolution_backward_data;
  using ByWeight = dnnl::deconvolution_backward_weights;
  static constexpr auto direct = dnnl::algorithm::deconvolution_direct;
};

/// The arguments that convolution and convolution_backward share, as oneDNN wants them.
struct ConvolutionArguments {
  dnnl::memory::dims strides, dilation;
  dnnl::memory::dims padding, after;  ///< before and after each dimension of the image
  std::int64_t groups = 1;
  bool transposed = false;
};

/// stride, padding, dilation, transposed, output_padding and groups follow one another from argument `first`.
std::optional<ConvolutionArguments> convolution_arguments(const ExternContext& context, std::size_t first,
                                                          std::size_t spatial, std::string& why_not);
/// Those for images of one dimension as those for images of height 1.
ConvolutionArguments with_height(ConvolutionArguments of_width);
/// [out, in / groups, ...] as [groups, out / groups, in / groups, ...].
ConcreteView grouped(ConcreteView weight, std::int64_t groups);
/// The weight of a transposed convolution, [in, out / groups, ...], as [groups, out / groups, in / groups, ...].
ConcreteView grouped_transposed(const ConcreteView& weight, std::int64_t groups);
/// The padding behind each dimension with which a transposed convolution of `input` makes `out`: the padding of the
/// output is part of its size.
dnnl::memory::dims transposed_after(const ConvolutionArguments& g, const ConcreteView& input,
                                    const ConcreteView& weight, const ConcreteView& out);
/// Does each pixel of the result depend on the same pixel of the input, by all channels? `weight`: its, or its
/// gradient.
bool is_of_pixels(const ConvolutionArguments& g, const ConcreteView& weight);
/// Is an element of a convolution a long sum, as is_long_sum() says? Where oneDNN adds up 32 channels and more over a
/// window of several pixels, its result is sooner twice as far from the one in double as PyTorch's, which takes blocks
/// of channels: from 120 products on. Of fewer channels PyTorch's are no nearer.
constexpr bool sums_long(std::int64_t channels, std::int64_t window) {
  return window > 1 && channels >= 32 ? channels * window > 96 : is_long_sum(channels * window);
}
/// sums_long() for the convolution by `weight`: [out, in / groups, ...].
bool has_long_sums(const ConcreteView& weight);
/// The first description of a primitive that oneDNN has, or for long sums the first one of several sums: of a kernel
/// for blocks of channels. make() begins the search.
auto with_short_sums(bool long_sums, auto make) {
  auto first = make();
  const auto name = [](const auto& pd) { return std::string_view(pd.impl_info_str()); };
  if (!long_sums || !name(first).starts_with("brg")) return first;
  for (auto other = make(); other.next_impl();)
    if (name(other) == "jit:avx512_core" || name(other) == "jit_1x1:avx512_core") return other;
  return first;
}
/// [pixels, channels] of images whose pixels are equally far apart.
std::optional<ConcreteView> matrix_of(const ConcreteView& images);
/// The view's sizes in whichever layout the library likes best.
dnnl::memory::desc any_layout(const ConcreteView& view);

/// Do the work's iterations go image after image and row after row? Then those of a row.
std::optional<std::int64_t> iterations_per_row(const ConcreteView& result, const ResultWork& work);

/// A convolution by blocks of rows, with the work that follows it done on each. `kernel`: the weight as
/// [groups, out / groups, in / groups, ...] if there are several groups. The step is null where blocks are not possible
/// or would take longer; errors are dnnl::error.
Prepared prepare_convolution_rows(const ExternContext& context, const ConvolutionArguments& g,
                                  const ConcreteView& input, const ConcreteView& kernel,
                                  const std::optional<ConcreteView>& bias, const ConcreteView& out,
                                  std::string& why_not);

}  // namespace partita::codegen
