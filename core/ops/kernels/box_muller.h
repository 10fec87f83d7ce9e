#pragma once
#include "core/tensor/generator.h"

namespace partita::kernels {

// Replaces sixteen uniform numbers by standard normal ones, times `deviation`, plus `mean`. Elements i and i + 8 are
// the radius and the angle of one pair (NormalFill16 of ATen/native/cpu/DistributionTemplates.h).
void box_muller_16(double* values, double mean, double deviation);
/// As ATen's AVX2 code, which machines with AVX512 run too: log, sine and cosine are the Cephes polynomials of
/// avx_mathfun.h, and each product is fused with the sum that follows it.
void box_muller_16(float* values, float mean, float deviation);

}  // namespace partita::kernels
