#ifdef __x86_64__

#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/lanes_avx512.inc"

namespace partita::codegen {
namespace {

constexpr int most_vectors = 2;
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/depthwise_kernel.inc"

}  // namespace

const DirectKernel depthwise_avx512 = kernel_named("avx512 depthwise");

}  // namespace partita::codegen

#endif
