#pragma once
#include <cstdint>
#include <optional>

namespace partita {

/// v as an integer, truncated; nullopt when it does not fit in 64 bits or is NaN.
inline std::optional<std::int64_t> as_integer(double v) {
  if (!(v >= -0x1p63 && v < 0x1p63)) return std::nullopt;
  return static_cast<std::int64_t>(v);
}

}  // namespace partita
