#pragma once
#include "core/tensor/generator.h"

namespace partita::kernels {

// Sixteen standard normal numbers, times `deviation`, plus `mean`, from as many uniform ones in place: element i and
// i + 8 are the radius and the angle of one pair (NormalFill16 of ATen/native/cpu/DistributionTemplates.h).
void box_muller_16(double* values, double mean, double deviation);
/// As ATen's AVX2 code (which AVX512 machines run too): log, sine and cosine are the Cephes polynomials of
/// avx_mathfun.h, with each product fused into the sum that follows it.
void box_muller_16(float* values, float mean, float deviation);

}  // namespace partita::kernels
