#pragma once
#include <string>
#include <string_view>

namespace partita {

/// The text as one word of a shell's command, in quotes where a shell would take it for something else.
std::string shell_word(std::string_view text);

}  // namespace partita
