#include "codegen/cuda/matrix/convolution_window.h"

namespace partita::codegen {

std::optional<ConvolutionWindow> convolution_window(const ExternContext& context, std::size_t first,
                                                    std::size_t dimensions) {
  auto stride = context.integers(first), padding = context.integers(first + 1), dilation = context.integers(first + 2);
  const auto transposed = context.number(first + 3), groups = context.number(first + 5);
  if (!stride || !padding || !dilation || !transposed || !groups) return std::nullopt;
  ConvolutionWindow w{*stride, *padding, *dilation, *transposed != 0, static_cast<std::int64_t>(*groups)};
  for (Sizes* list : {&w.stride, &w.padding, &w.dilation})
    if (list->size() == 1) list->resize(dimensions, (*list)[0]);
  return w;
}

bool wants_gradient(const ExternContext& context, std::size_t which) {
  const auto mask = context.integers(gradient_mask);
  const auto& results = context.call.results;
  return mask && which < mask->size() && (*mask)[which] && which < results.size() && results[which].buffer >= 0;
}

}  // namespace partita::codegen
