#include "core/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace partita {

std::string content_hash(std::string_view bytes) {
  XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

void add_part(std::string& key, std::string_view part) {
  key += fmt::format("{}:", part.size());
  key += part;
}

}  // namespace partita
