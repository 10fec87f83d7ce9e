#ifdef __x86_64__

#include "codegen/cpu/extern/attention_kernel.h"

namespace partita::codegen {
namespace {

constexpr int vector_bytes = 64, row_registers = 24;
#include "codegen/cpu/extern/vectors.inc"
// The kernel uses what vectors.inc defines.
#include "codegen/cpu/extern/attention_kernel.inc"

}  // namespace

const AttentionKernel attention_avx512 = kernel_named("avx512");

}  // namespace partita::codegen

#endif
