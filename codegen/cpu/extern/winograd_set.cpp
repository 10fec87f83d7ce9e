#include "codegen/cpu/extern/instruction_set.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "codegen/cpu/extern/winograd_kernel.h"

namespace partita::codegen {
namespace {

constexpr const ProductKernel& product = PARTITA_OF_SET(product);
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/winograd_kernel.inc"

}  // namespace

const WinogradKernel PARTITA_OF_SET(winograd) = kernel_named(PARTITA_SET " winograd");

}  // namespace partita::codegen
