#pragma once
#include <cctype>
#include <string_view>

namespace partita {

/// Is this a symbol that only values decide, by PyTorch's names: an integer (u0) or a float (zuf0)?
inline bool is_unbacked(std::string_view symbol) {
  if (symbol.starts_with("zuf")) return true;
  return symbol.size() > 1 && symbol[0] == 'u' && std::isdigit(static_cast<unsigned char>(symbol[1]));
}

}  // namespace partita
