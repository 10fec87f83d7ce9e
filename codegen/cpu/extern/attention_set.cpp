#include "codegen/cpu/extern/attention_kernel.h"

namespace partita::codegen {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, row_registers = 24;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32, row_registers = 12;
#else
constexpr int vector_bytes = 16, row_registers = 12;
#endif
#include "codegen/cpu/extern/vectors.inc"
// The kernel uses what vectors.inc defines.
#include "codegen/cpu/extern/attention_kernel.inc"

}  // namespace

#if defined(__AVX512F__)
const AttentionKernel attention_avx512 = kernel_named("avx512");
#elif defined(__AVX2__)
const AttentionKernel attention_avx2 = kernel_named("avx2");
#else
const AttentionKernel attention_baseline = kernel_named("baseline");
#endif

}  // namespace partita::codegen
