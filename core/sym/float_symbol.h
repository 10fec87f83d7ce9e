#pragma once
#include <bit>
#include <cctype>
#include <cstdint>
#include <string_view>

#include "core/sym/sym_expr.h"

namespace partita {

/// Is this a symbol for a float (zf0, zuf0)? In maps from symbols to values its value is the bits of the double.
inline bool is_float_symbol(std::string_view name) {
  return name.starts_with("zf") || name.starts_with("zuf");
}
inline std::int64_t float_bits(double value) {
  return std::bit_cast<std::int64_t>(value);
}
inline double float_of_bits(std::int64_t bits) {
  return std::bit_cast<double>(bits);
}
/// The number that a symbol's value in such a map stands for.
inline SymExpr symbol_value(std::string_view name, std::int64_t value) {
  return is_float_symbol(name) ? SymExpr::real(float_of_bits(value)) : SymExpr(value);
}

/// Is this a symbol that only values decide, by PyTorch's names: an integer (u0) or a float (zuf0)?
inline bool is_unbacked(std::string_view symbol) {
  if (symbol.starts_with("zuf")) return true;
  return symbol.size() > 1 && symbol[0] == 'u' && std::isdigit(static_cast<unsigned char>(symbol[1]));
}

}  // namespace partita
