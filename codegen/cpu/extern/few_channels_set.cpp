#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/instruction_set.h"

namespace partita::codegen {
namespace {

constexpr int registers = lanes == 16 ? 24 : 12;
#include "codegen/cpu/extern/finish.inc"
// The kernel uses what finish.inc defines.
#include "codegen/cpu/extern/few_channels_kernel.inc"

}  // namespace

const DirectKernel PARTITA_OF_SET(few_channels) = kernel_named(PARTITA_SET " few channels");

}  // namespace partita::codegen
