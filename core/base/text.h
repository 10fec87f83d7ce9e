#pragma once
#include <string_view>
#include <vector>

namespace partita {

/// Without white space at its ends.
std::string_view trimmed(std::string_view text);
/// Its lines, without their newlines.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace partita
