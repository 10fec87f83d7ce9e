#pragma once
// The loop of box_muller_16 in single precision, for files that are compiled for some instructions. std::fma is a call
// where there is no instruction for it. Branches and inner loops are avoided, so that the loop becomes one of vectors.
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace partita::kernels {
namespace {

/// p[0] x^n + p[1] x^(n-1) + ... + p[n] by Horner's rule.
template <std::size_t n>
inline float polynomial(const float (&p)[n], float x) {
  float sum = p[0];
  // Without a loop, so that the loop around it becomes one of vectors.
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((sum = std::fma(sum, x, p[i + 1])), ...);
  }(std::make_index_sequence<n - 1>());
  return sum;
}

/// Cephes logf for x in (0, 1].
inline float log_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  float exponent = static_cast<float>(static_cast<int>(bits >> 23) - 126);
  float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);  // in [0.5, 1)
  // Twice m below sqrt(1/2), in selections in place of branches, for vectors.
  const bool below = m < static_cast<float>(std::numbers::sqrt2 / 2);
  exponent -= below ? 1.0f : 0.0f;
  m = (m - 1) + (below ? m : 0.0f);
  constexpr float p[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f, 1.4249322787e-1f,
                         -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  const float square = m * m;
  // ln 2 is 0.693359375 - 2.12194440e-4.
  float rest = std::fma(polynomial(p, m) * m, square, exponent * -2.12194440e-4f);
  rest = std::fma(-square, 0.5f, rest);
  return std::fma(exponent, 0.693359375f, m + rest);
}

/// Cephes sinf and cosf for x in [0, 2 pi].
inline void sine_and_cosine(float x, float& sine, float& cosine) {
  const int octant = (static_cast<int>(x * static_cast<float>(4 / std::numbers::pi)) + 1) & ~1;
  const auto n = static_cast<float>(octant);
  // The three parts are -pi / 4.
  x = std::fma(n, -3.77489497744594108e-8f, std::fma(n, -2.4187564849853515625e-4f, std::fma(n, -0.78515625f, x)));
  const float square = x * x;
  constexpr float c[] = {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};
  constexpr float s[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
  const float along = std::fma(polynomial(c, square) * square, square, -(square * 0.5f)) + 1;
  const float across = std::fma(polynomial(s, square) * square, x, x);
  const bool swapped = octant & 2;
  sine = swapped ? along : across;
  cosine = swapped ? across : along;
  const auto negated_if_4 = [](float v, int bits) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) ^ static_cast<std::uint32_t>(bits & 4) << 29);
  };
  sine = negated_if_4(sine, octant);
  cosine = negated_if_4(cosine, octant + 2);
}

inline void box_muller_of(float* values, float mean, float deviation) {
  for (int i = 0; i < 8; ++i) {
    const float radius = std::sqrt(-2 * log_of(1 - values[i]));
    float sine, cosine;
    sine_and_cosine(static_cast<float>(2 * std::numbers::pi) * values[i + 8], sine, cosine);
    values[i] = std::fma(radius * cosine, deviation, mean);
    values[i + 8] = std::fma(radius * sine, deviation, mean);
  }
}

}  // namespace
}  // namespace partita::kernels
