#include "core/tensor/random.h"

#include <atomic>
#include <cmath>
#include <numbers>

namespace partita {
namespace {

std::atomic<std::uint64_t> seed = 0, stream = 0;

}  // namespace

Philox::Philox(std::uint64_t seed, std::uint64_t stream)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, 0, static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)} {}

void Philox::refill() {
  block_ = counter_;
  auto key = key_;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = 0xD2511F53ull * block_[0], b = 0xCD9E8D57ull * block_[2];
    block_ = {static_cast<std::uint32_t>(b >> 32) ^ block_[1] ^ key[0], static_cast<std::uint32_t>(b),
              static_cast<std::uint32_t>(a >> 32) ^ block_[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  if (++counter_[0] == 0) ++counter_[1];
  used_ = 0;
}

std::uint32_t Philox::next() {
  if (used_ == 4) refill();
  return block_[static_cast<std::size_t>(used_++)];
}

double Philox::uniform() {
  return static_cast<double>(next64() >> 11) * 0x1p-53;
}

double Philox::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

Philox next_random_stream() {
  return {seed, stream++};
}

void set_random_seed(std::uint64_t value) {
  seed = value;
  stream = 0;
}

}  // namespace partita
