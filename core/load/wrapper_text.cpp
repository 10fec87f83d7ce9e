#include "core/load/wrapper_text.h"

#include "core/base/text.h"

namespace partita {

std::vector<std::string_view> call_arguments(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ')';
    const bool closes = i == text.size() || ((c == ')' || c == ']' || c == '}') && depth-- == 0);
    depth += c == '(' || c == '[' || c == '{';
    if (!closes && !(c == ',' && depth == 0)) continue;
    if (const std::string_view item = trimmed(text.substr(begin, i - begin)); !item.empty()) out.push_back(item);
    begin = i + 1;
    if (closes) break;
  }
  return out;
}

std::string_view variable_of(std::string_view argument) {
  constexpr std::string_view view = "reinterpret_tensor(";
  while (argument.starts_with(view)) {
    const std::vector<std::string_view> inner = call_arguments(argument.substr(view.size()));
    if (inner.empty()) return {};
    argument = inner.front();
  }
  return argument;
}

std::string_view taken_inputs(std::string_view line) {
  constexpr std::string_view takes = " = args";
  return line.ends_with(takes) ? line.substr(0, line.size() - takes.size()) : std::string_view();
}

}  // namespace partita
