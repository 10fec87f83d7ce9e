#pragma once
#include <array>
#include <cstdint>

namespace partita {

/// Philox4x32-10: the numbers of one (seed, stream) pair, the same on every machine.
class Philox {
 public:
  Philox(std::uint64_t seed, std::uint64_t stream);

  std::uint32_t next();
  std::uint64_t next64() { return static_cast<std::uint64_t>(next()) << 32 | next(); }
  double uniform();  ///< in [0, 1), 53 bits
  double normal();   ///< mean 0, deviation 1

 private:
  void refill();
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_, block_{};
  int used_ = 4;
};

/// The numbers of the next random operator that this process runs. Streams follow each other from set_random_seed on,
/// so that a run repeats. Values are not PyTorch's.
Philox next_random_stream();
void set_random_seed(std::uint64_t seed);

}  // namespace partita
