#include "codegen/cpu/extern/instruction_set.h"
#include "codegen/cpu/extern/product_kernel.h"

namespace partita::codegen {
namespace {

constexpr int most_rows = 4;  // what is widened takes registers
#include "codegen/cpu/extern/finish.inc"
#include "codegen/cpu/extern/product_panels.inc"
// The tiles use what the others define.
#include "codegen/cpu/extern/product_kernel.inc"
// As does this.
#include "codegen/cpu/extern/narrow_kernel.inc"

}  // namespace

const NarrowKernel PARTITA_OF_SET(narrow) = {widen, narrow, pack, run};

}  // namespace partita::codegen
