#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace partita {

/// Without white space at its ends.
std::string_view trimmed(std::string_view text);
/// Its lines, without their newlines.
std::vector<std::string_view> lines_of(std::string_view text);

/// The text as one word of a shell's command, in quotes where a shell would take it for something else.
std::string shell_word(std::string_view text);

}  // namespace partita
