#pragma once
// What emulated code tells of an access to memory: void partita_access(const void* at, bytes, how).
#include <cstdint>

namespace partita::codegen {

inline constexpr const char* access_symbol = "partita_access";
inline constexpr std::uint64_t access_write = 1, access_atomic = 2;
inline constexpr unsigned access_align_shift = 8;  ///< log2 of the alignment that the access relies on
inline constexpr unsigned access_line_shift = 32;  ///< the line in the kernel's text; 0: unknown

}  // namespace partita::codegen
