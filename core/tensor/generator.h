#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace partita {

/// The random state of a run. It gives the numbers of PyTorch's CPU generator (ATen/CPUGeneratorImpl.h) after
/// torch.manual_seed. The engine is MT19937 (Matsumoto & Nishimura 1998), seeded with the low 32 bits of the seed. All
/// operators of a run draw from one generator, in graph order. Not thread-safe.
class Generator {
 public:
  /// The seed of a new torch.Generator() (c10::detail::default_rng_seed_val).
  static constexpr std::uint64_t default_seed = 67280421310721;
  static constexpr std::size_t state_size = 5056;  ///< bytes of a torch.get_rng_state()

  explicit Generator(std::uint64_t seed = default_seed);

  /// The next 32 bits of the Mersenne Twister.
  std::uint32_t random();
  void random(std::span<std::uint32_t> words);  ///< as many draws, in one go
  std::uint64_t random64();                     ///< two draws; the first gives the high 32 bits
  float uniform_float();                        ///< in [0, 1), 24 bits
  static float uniform_of(std::uint32_t draw) { return static_cast<float>(draw & ((1u << 24) - 1)) * 0x1p-24f; }
  double uniform();  ///< in [0, 1), 53 bits
  /// Returns mean + deviation * z. A Box-Muller transform gives two numbers z; the second is kept for the next call.
  double normal(double mean, double deviation);

  /// The bytes of torch.get_rng_state() in this state.
  std::array<std::byte, state_size> state() const;
  /// Continues from such bytes. False, and unchanged, if they are no state of this engine.
  bool set_state(std::span<const std::byte> bytes);

 private:
  void renew();  ///< the next 624 words

  std::uint64_t seed_;
  std::array<std::uint32_t, 624> words_;
  std::uint32_t next_ = 0, left_ = 1;  ///< the word to give next; one more than are left before it
  std::optional<double> next_normal_;
};

}  // namespace partita
