#ifdef __x86_64__

#include "codegen/cpu/extern/lanes_avx512.inc"
#include "codegen/cpu/extern/product_kernel.h"
#include "codegen/cpu/extern/winograd_kernel.h"

namespace partita::codegen {
namespace {

constexpr const ProductKernel& product = product_avx512;
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/winograd_kernel.inc"

}  // namespace

const WinogradKernel winograd_avx512 = kernel_named("avx512 winograd");

}  // namespace partita::codegen

#endif
