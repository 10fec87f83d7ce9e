#include "core/base/python_text.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

namespace partita {
namespace {

bool is_letter(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c > 127;
}
bool is_digit(unsigned char c) {
  return c >= '0' && c <= '9';
}

/// The number of bytes of the UTF-8 character that begins here (RFC 3629, as Python's decoder takes it); 0 if there is
/// none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool sound = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return sound && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool sound = follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return sound && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string escaped(std::string_view text, char quote) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    const std::size_t length = utf8_length(text.substr(at));
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (byte < 0x20 || byte == 0x7f || length == 0)
      out += fmt::format("\\x{:02x}", byte);
    else if (quote && (c == quote || c == '\\'))
      (out += '\\') += c;
    else
      out += text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

}  // namespace

bool is_identifier(std::string_view text) {
  static const std::unordered_set<std::string_view> keywords = {
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield",
  };
  return !text.empty() && !is_digit(static_cast<unsigned char>(text[0])) && !keywords.contains(text) &&
         std::ranges::all_of(text, [](unsigned char c) { return is_letter(c) || is_digit(c); });
}

bool is_dotted_name(std::string_view text) {
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!is_identifier(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

std::string one_line(std::string_view text) {
  return escaped(text, 0);
}

std::string inside_quotes(std::string_view text, char quote) {
  return escaped(text, quote);
}

}  // namespace partita
