#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace partita {

/// Incremental MD5. TORCH_TRACE logs carry it as the checksum of their payloads, and FX drawings choose colours by it.
/// Not for security.
class Md5 {
 public:
  void update(std::string_view bytes);  ///< adds bytes
  std::string hex();                    ///< finishes the checksum; call it once, after the last update

 private:
  void block(const unsigned char* data);

  std::array<std::uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::uint64_t length_ = 0;
  std::array<unsigned char, 64> buffer_ = {};
};

}  // namespace partita
