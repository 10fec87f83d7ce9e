#pragma once
#include <cstdint>
#include <optional>
#include <random>

namespace partita {

/// The random state of a run: PyTorch's CPU generator (ATen/CPUGeneratorImpl.h) after torch.manual_seed, number for
/// number. The engine is MT19937 (Matsumoto & Nishimura 1998), started from the low 32 bits of the seed. Every operator
/// of a run draws from the same one, in the order of the graph. Not for several threads at once.
class Generator {
 public:
  /// What a torch.Generator() begins with (c10::detail::default_rng_seed_val).
  static constexpr std::uint64_t default_seed = 67280421310721;

  explicit Generator(std::uint64_t seed = default_seed) : engine_(static_cast<std::uint32_t>(seed)) {}

  std::uint32_t random() { return static_cast<std::uint32_t>(engine_()); }
  std::uint64_t random64();  ///< of two draws, the first one high
  float uniform_float();     ///< in [0, 1), 24 bits
  double uniform();          ///< in [0, 1), 53 bits
  /// mean + deviation * z. z are the two numbers of a Box-Muller transform, of which the second is kept for the next
  /// call.
  double normal(double mean, double deviation);

 private:
  std::mt19937 engine_;
  std::optional<double> next_normal_;
};

}  // namespace partita
