#ifdef __x86_64__

#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/lanes_avx2.inc"

namespace partita::codegen {
namespace {

constexpr int registers = 12;
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/few_channels_kernel.inc"

}  // namespace

const DirectKernel few_channels_avx2 = kernel_named("avx2 few channels");

}  // namespace partita::codegen

#endif
