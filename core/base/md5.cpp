#include "core/base/md5.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace partita {
namespace {

constexpr int shifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

/// floor(2^32 |sin(i + 1)|), RFC 1321.
const std::array<std::uint32_t, 64>& sines() {
  static const auto table = [] {
    std::array<std::uint32_t, 64> t;
    for (std::size_t i = 0; i < 64; ++i)
      t[i] = static_cast<std::uint32_t>(std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
    return t;
  }();
  return table;
}

}  // namespace

void Md5::block(const unsigned char* data) {
  static const std::array<std::uint32_t, 64>& k = sines();
  std::uint32_t word[16];
  std::memcpy(word, data, 64);
  auto [a, b, c, d] = state_;
  auto step = [&](std::uint32_t f, std::size_t i, std::size_t g, int shift) {
    std::uint32_t next = b + std::rotl(a + f + k[i] + word[g], shift);
    a = d;
    d = c;
    c = b;
    b = next;
  };
  for (std::size_t i = 0; i < 16; ++i) step((b & c) | (~b & d), i, i, shifts[0][i % 4]);
  for (std::size_t i = 16; i < 32; ++i) step((d & b) | (~d & c), i, (5 * i + 1) % 16, shifts[1][i % 4]);
  for (std::size_t i = 32; i < 48; ++i) step(b ^ c ^ d, i, (3 * i + 5) % 16, shifts[2][i % 4]);
  for (std::size_t i = 48; i < 64; ++i) step(c ^ (b | ~d), i, (7 * i) % 16, shifts[3][i % 4]);
  state_[0] += a;
  state_[1] += b;
  state_[2] += c;
  state_[3] += d;
}

void Md5::update(std::string_view bytes) {
  std::size_t filled = length_ % 64;
  length_ += bytes.size();
  if (filled > 0) {
    std::size_t take = std::min(64 - filled, bytes.size());
    std::memcpy(buffer_.data() + filled, bytes.data(), take);
    bytes.remove_prefix(take);
    if (filled + take < 64) return;
    block(buffer_.data());
  }
  for (; bytes.size() >= 64; bytes.remove_prefix(64)) block(reinterpret_cast<const unsigned char*>(bytes.data()));
  if (!bytes.empty()) std::memcpy(buffer_.data(), bytes.data(), bytes.size());
}

std::string Md5::hex() {
  std::uint64_t bits = length_ * 8;
  update(std::string_view("\x80", 1));
  while (length_ % 64 != 56) update(std::string_view("\0", 1));
  update(std::string_view(reinterpret_cast<const char*>(&bits), 8));
  std::string out;
  for (std::uint32_t word : state_)
    for (int i = 0; i < 4; ++i) out += fmt::format("{:02x}", (word >> (8 * i)) & 0xff);
  return out;
}

}  // namespace partita
