// Compiled for AVX2 and fused multiply-add, where there are these.
#include "core/ops/kernels/box_muller_kernel.h"

namespace partita::kernels {

void box_muller_16_fma(float* values, float mean, float deviation) {
  box_muller_of(values, mean, deviation);
}

}  // namespace partita::kernels
