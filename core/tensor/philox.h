#pragma once
#include <array>
#include <cstdint>

namespace partita {

/// The state of a CUDA generator of PyTorch. The offset counts numbers, and is a multiple of 4.
struct PhiloxState {
  std::uint64_t seed = 0, offset = 0;
};

/// One block of Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011, Random123): four numbers that depend only on the
/// counter and the key.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ull * counter[0], b = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

}  // namespace partita
