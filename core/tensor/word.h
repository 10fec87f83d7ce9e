#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>

namespace partita {

/// Calls f with a value of a type of that many bytes, for moves that ignore the value.
decltype(auto) with_word(std::size_t bytes, auto&& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
    default:
      return f(std::complex<double>{});
  }
}

}  // namespace partita
