#pragma once
#include "codegen/cpu/extern/onednn.h"

namespace partita::codegen {

/// The arguments that convolution and convolution_backward share, as oneDNN wants them.
struct ConvolutionArguments {
  dnnl::memory::dims strides, dilation;
  dnnl::memory::dims padding, after;  ///< before and after each dimension of the image
  std::int64_t groups = 1;
};

/// A convolution by blocks of rows, with the work that follows it done on each. `kernel`: the weight as
/// [groups, out / groups, in / groups, ...] if there are several groups. The step is null where blocks are not possible
/// or would take longer; errors are dnnl::error.
Prepared prepare_convolution_rows(const ExternContext& context, const ConvolutionArguments& g,
                                  const ConcreteView& input, const ConcreteView& kernel,
                                  const std::optional<ConcreteView>& bias, const ConcreteView& out,
                                  std::string& why_not);

}  // namespace partita::codegen
