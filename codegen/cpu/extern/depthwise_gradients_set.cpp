#include "codegen/cpu/extern/direct_kernel.h"
#include "codegen/cpu/extern/instruction_set.h"

namespace partita::codegen {
namespace {

#include "codegen/cpu/extern/depthwise_gradients_kernel.inc"

}  // namespace

const DepthwiseGradients PARTITA_OF_SET(depthwise_gradients) = kernel_named(PARTITA_SET " depthwise");

}  // namespace partita::codegen
