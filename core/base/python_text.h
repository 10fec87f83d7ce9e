#pragma once
// Text of a file that becomes part of Python source we write: names are checked, everything else is escaped.
#include <string>
#include <string_view>

namespace partita {

/// A Python identifier; bytes above 127 count as letters.
bool is_identifier(std::string_view text);
/// Identifiers joined by dots: "torch.ops.aten.add.Tensor".
bool is_dotted_name(std::string_view text);

/// The text on one line of a comment: control characters and what is no UTF-8 become escapes (\n, \x1b).
std::string one_line(std::string_view text);
/// The same for inside of a string literal between these quotes, which are escaped too, as is the backslash.
std::string inside_quotes(std::string_view text, char quote);

}  // namespace partita
