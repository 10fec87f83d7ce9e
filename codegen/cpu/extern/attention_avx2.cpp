#ifdef __x86_64__

#include "codegen/cpu/extern/attention_kernel.h"

namespace partita::codegen {
namespace {

constexpr int vector_bytes = 32, row_registers = 12;
#include "codegen/cpu/extern/vectors.inc"
// The kernel uses what vectors.inc defines.
#include "codegen/cpu/extern/attention_kernel.inc"

}  // namespace

const AttentionKernel attention_avx2 = kernel_named("avx2");

}  // namespace partita::codegen

#endif
