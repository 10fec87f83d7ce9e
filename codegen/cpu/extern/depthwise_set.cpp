#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/instruction_set.h"

namespace partita::codegen {
namespace {

constexpr int most_vectors = lanes == 16 ? 2 : 1;
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/depthwise_kernel.inc"

}  // namespace

const DirectKernel PARTITA_OF_SET(depthwise) = kernel_named(PARTITA_SET " depthwise");

}  // namespace partita::codegen
