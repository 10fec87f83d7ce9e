#include "core/tensor/generator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace partita {
namespace {

/// CPUGeneratorImplState of ATen/CPUGeneratorImpl.cpp, of which torch.get_rng_state() returns the bytes.
struct SavedState {
  std::uint64_t seed = 0;
  std::int32_t left = 1, seeded = 1;
  std::uint64_t next = 0;
  std::array<std::uint64_t, 624> words = {};
  double unused_x = 0, normal = 0, unused_rho = 0;
  std::int32_t has_normal = 0, padding = 0;
  float single_normal = 0;  // no operator of the CPU draws one
  std::uint32_t has_single_normal = 0;
};
static_assert(sizeof(SavedState) == Generator::state_size);

std::uint32_t twisted(std::uint32_t word, std::uint32_t next) {
  const std::uint32_t pair = (word & 0x80000000u) | (next & 0x7fffffffu);
  return pair >> 1 ^ (-(pair & 1u) & 0x9908b0dfu);
}

std::uint32_t tempered(std::uint32_t word) {
  word ^= word >> 11;
  word ^= word << 7 & 0x9d2c5680u;
  word ^= word << 15 & 0xefc60000u;
  return word ^ word >> 18;
}

}  // namespace

Generator::Generator(std::uint64_t seed) : seed_(seed) {
  words_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t i = 1; i < words_.size(); ++i) words_[i] = 1812433253u * (words_[i - 1] ^ words_[i - 1] >> 30) + i;
}

void Generator::renew() {
  constexpr std::size_t n = 624, m = 397;
  std::uint32_t* w = words_.data();
  // Two loops without remainders, which compilers vectorise.
  for (std::size_t i = 0; i < n - m; ++i) w[i] = w[i + m] ^ twisted(w[i], w[i + 1]);
  for (std::size_t i = n - m; i < n - 1; ++i) w[i] = w[i + m - n] ^ twisted(w[i], w[i + 1]);
  w[n - 1] = w[m - 1] ^ twisted(w[n - 1], w[0]);
  next_ = 0;
  left_ = n;
}

std::uint32_t Generator::random() {
  if (--left_ == 0) renew();
  return tempered(words_[next_++]);
}

void Generator::random(std::span<std::uint32_t> words) {
  while (!words.empty()) {
    if (left_ == 1) {
      renew();
      ++left_;
    }
    const std::size_t n = std::min<std::size_t>(left_ - 1, words.size());
    std::transform(words_.data() + next_, words_.data() + next_ + n, words.data(), tempered);
    next_ += static_cast<std::uint32_t>(n);
    left_ -= static_cast<std::uint32_t>(n);
    words = words.subspan(n);
  }
}

std::array<std::byte, Generator::state_size> Generator::state() const {
  SavedState saved;
  saved.seed = seed_;
  saved.left = static_cast<std::int32_t>(left_);
  saved.next = next_;
  for (std::size_t i = 0; i < words_.size(); ++i) saved.words[i] = words_[i];
  saved.has_normal = next_normal_.has_value();
  saved.normal = next_normal_.value_or(0);
  std::array<std::byte, state_size> bytes;
  std::memcpy(bytes.data(), &saved, state_size);
  return bytes;
}

bool Generator::set_state(std::span<const std::byte> bytes) {
  SavedState saved;
  if (bytes.size() != state_size) return false;
  std::memcpy(&saved, bytes.data(), state_size);
  if (saved.seeded != 1 || saved.left < 1 || saved.next > 624 ||
      saved.next + static_cast<std::uint64_t>(saved.left) > 625)
    return false;
  seed_ = saved.seed;
  left_ = static_cast<std::uint32_t>(saved.left);
  next_ = static_cast<std::uint32_t>(saved.next);
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = static_cast<std::uint32_t>(saved.words[i]);
  next_normal_ = saved.has_normal ? std::optional(saved.normal) : std::nullopt;
  return true;
}

std::uint64_t Generator::random64() {
  const std::uint64_t high = random();
  return high << 32 | random();
}

float Generator::uniform_float() {
  return uniform_of(random());
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
