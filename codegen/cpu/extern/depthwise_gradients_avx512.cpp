#ifdef __x86_64__

#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/lanes_avx512.inc"

namespace partita::codegen {
namespace {

#include "codegen/cpu/extern/depthwise_gradients_kernel.inc"

}  // namespace

const DepthwiseGradients depthwise_gradients_avx512 = kernel_named("avx512 depthwise");

}  // namespace partita::codegen

#endif
