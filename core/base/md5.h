#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace partita {

/// MD5, fed in pieces: the checksum TORCH_TRACE logs carry for their payloads, the colours of FX drawings. Not for
/// security.
class Md5 {
 public:
  void update(std::string_view bytes);
  std::string hex();  ///< ends the sum

 private:
  void block(const unsigned char* data);

  std::array<std::uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::uint64_t length_ = 0;
  std::array<unsigned char, 64> buffer_ = {};
};

}  // namespace partita
