#ifdef __x86_64__

#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/lanes_avx2.inc"

namespace partita::codegen {
namespace {

constexpr int most_vectors = 1;
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/depthwise_kernel.inc"

}  // namespace

const DirectKernel depthwise_avx2 = kernel_named("avx2 depthwise");

}  // namespace partita::codegen

#endif
