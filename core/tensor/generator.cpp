#include "core/tensor/generator.h"

#include <cmath>
#include <numbers>

namespace partita {

std::uint64_t Generator::random64() {
  const std::uint64_t high = random();
  return high << 32 | random();
}

float Generator::uniform_float() {
  return static_cast<float>(random() & ((1u << 24) - 1)) * 0x1p-24f;
}

double Generator::uniform() {
  return static_cast<double>(random64() & ((1ull << 53) - 1)) * 0x1p-53;
}

double Generator::normal(double mean, double deviation) {
  double z;
  if (next_normal_) {
    z = *next_normal_;
    next_normal_.reset();
  } else {
    const double angle = 2 * std::numbers::pi * uniform();
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    next_normal_ = radius * std::sin(angle);
    z = radius * std::cos(angle);
  }
  return std::fma(z, deviation, mean);  // fused, because ATen's AVX2 and AVX-512 kernels are
}

}  // namespace partita
