#ifdef __x86_64__

#include "codegen/cpu/extern/lanes_avx2.inc"
#include "codegen/cpu/extern/product_kernel.h"

namespace partita::codegen {
namespace {

constexpr int most_rows = 6;
#include "codegen/cpu/extern/finish.inc"
#include "codegen/cpu/extern/product_panels.inc"
// These use what the others define.
#include "codegen/cpu/extern/product_kernel.inc"
#include "codegen/cpu/extern/product_packing.inc"

}  // namespace

const ProductKernel product_avx2 = {.name = "avx2",
                                    .panel_columns = panel_width,
                                    .beats_library = true,
                                    .packed_elements = elements,
                                    .place = place_of,
                                    .pack = pack,
                                    .transpose = transpose_matrix,
                                    .run = run_of<float>,
                                    .narrow = &narrow_avx2};

}  // namespace partita::codegen

#endif
