#ifdef __x86_64__

#include "codegen/cpu/extern/lanes_avx2.inc"
#include "codegen/cpu/extern/product_kernel.h"

namespace partita::codegen {
namespace {

constexpr int most_vectors = 2, most_rows = 6;
constexpr std::int64_t most_depth = 512;
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/product_kernel.inc"

}  // namespace

const ProductKernel product_avx2 = kernel_named("avx2", true);

}  // namespace partita::codegen

#endif
