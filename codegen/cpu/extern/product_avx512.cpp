#ifdef __x86_64__

#include "codegen/cpu/extern/lanes_avx512.inc"
#include "codegen/cpu/extern/product_kernel.h"

namespace partita::codegen {
namespace {

constexpr int most_vectors = 3, most_rows = 8;
constexpr std::int64_t most_depth = 1024;
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/product_kernel.inc"

}  // namespace

const ProductKernel product_avx512 = kernel_named("avx512", false);

}  // namespace partita::codegen

#endif
