#include "codegen/cpu/extern/instruction_set.h"
#include "codegen/cpu/extern/product_kernel.h"

namespace partita::codegen {
namespace {

constexpr int most_rows = lanes == 16 ? 8 : 6;
#include "codegen/cpu/extern/finish.inc"
#include "codegen/cpu/extern/product_panels.inc"
// These use what the others define.
#include "codegen/cpu/extern/product_kernel.inc"
#include "codegen/cpu/extern/product_packing.inc"

}  // namespace

const ProductKernel PARTITA_OF_SET(product) = {.name = PARTITA_SET,
                                               .panel_columns = panel_width,
                                               .beats_library = lanes == 8,
                                               .packed_elements = elements,
                                               .place = place_of,
                                               .pack = pack,
                                               .transpose = transpose_matrix,
                                               .run = run_of<float>,
                                               .narrow = &PARTITA_OF_SET(narrow)};

}  // namespace partita::codegen
