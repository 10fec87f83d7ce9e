#include "core/ops/kernels/box_muller.h"

#include "core/ops/kernels/box_muller_kernel.h"

namespace partita::kernels {

void box_muller_16(double* values, double mean, double deviation) {
  for (int i = 0; i < 8; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - values[i])), angle = 2 * std::numbers::pi * values[i + 8];
    values[i] = std::fma(radius * std::cos(angle), deviation, mean);
    values[i + 8] = std::fma(radius * std::sin(angle), deviation, mean);
  }
}

#ifdef __x86_64__
void box_muller_16_fma(float* values, float mean, float deviation);
#endif

void box_muller_16(float* values, float mean, float deviation) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return box_muller_16_fma(values, mean, deviation);
#endif
  box_muller_of(values, mean, deviation);
}

}  // namespace partita::kernels
