#pragma once
#include <cstdint>
#include <optional>
#include <random>

namespace partita {

/// The random state of a run. It gives the numbers of PyTorch's CPU generator (ATen/CPUGeneratorImpl.h) after
/// torch.manual_seed. The engine is MT19937 (Matsumoto & Nishimura 1998), seeded with the low 32 bits of the seed. All
/// operators of a run draw from one generator, in graph order. Not thread-safe.
class Generator {
 public:
  /// The seed of a new torch.Generator() (c10::detail::default_rng_seed_val).
  static constexpr std::uint64_t default_seed = 67280421310721;

  explicit Generator(std::uint64_t seed = default_seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  std::uint32_t random() { return static_cast<std::uint32_t>(engine_()); }
  std::uint64_t random64();  ///< two draws; the first gives the high 32 bits
  float uniform_float();     ///< in [0, 1), 24 bits
  double uniform();          ///< in [0, 1), 53 bits
  /// Returns mean + deviation * z. A Box-Muller transform gives two numbers z; the second is kept for the next call.
  double normal(double mean, double deviation);

 private:
  std::mt19937 engine_;
  std::optional<double> next_normal_;
};

}  // namespace partita
