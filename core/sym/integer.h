#pragma once
#include <cstdint>
#include <optional>

namespace partita {

/// The integer that a computed number is; nullopt when it has more than 64 bits.
inline std::optional<std::int64_t> as_integer(double v) {
  if (!(v >= -0x1p63 && v < 0x1p63)) return std::nullopt;
  return static_cast<std::int64_t>(v);
}

}  // namespace partita
