#pragma once
// Text of a file that becomes part of Python source: names are checked, everything else is escaped.
#include <string>
#include <string_view>

namespace partita {

/// Is it a Python identifier, and no keyword? Bytes above 127 count as letters.
bool is_identifier(std::string_view text);
/// Is it identifiers joined by dots: "torch.ops.aten.add.Tensor"?
bool is_dotted_name(std::string_view text);

/// The text for one line of a comment. Control characters and invalid UTF-8 become escapes (\n, \x1b).
std::string one_line(std::string_view text);
/// The text for a string literal in these quotes. Escapes the quote and the backslash too.
std::string inside_quotes(std::string_view text, char quote);

}  // namespace partita
