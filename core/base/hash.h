#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace partita {

/// 128-bit XXH3 of the bytes, as 32 hexadecimal digits. The store uses it as content address.
std::string content_hash(std::string_view bytes);
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);

/// Adds a part to the text of a key, and where it ends: other parts never give the same text.
void add_part(std::string& key, std::string_view part);

inline std::uint64_t hash_combine(std::uint64_t a, std::uint64_t b) {
  return (a ^ b) * 0x9e3779b97f4a7c15ULL + (a >> 29);
}

}  // namespace partita
