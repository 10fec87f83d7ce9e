#pragma once
#include <algorithm>
#include <string_view>

namespace partita {

/// Orders names as people do: by the numbers in them, output.2 before output.10, and else by their letters, whether
/// these are small or capital. Negative, 0 or positive. QCollator does this only where Qt was built with ICU.
template <class Char>
int compare_naturally(std::basic_string_view<Char> a, std::basic_string_view<Char> b) {
  const auto is_digit = [](Char c) { return c >= '0' && c <= '9'; };
  const auto small = [](Char c) { return c >= 'A' && c <= 'Z' ? static_cast<Char>(c - 'A' + 'a') : c; };
  const auto number_at = [&](std::basic_string_view<Char> text, std::size_t from) {
    std::size_t end = from;
    while (end < text.size() && is_digit(text[end])) ++end;
    return text.substr(from, end - from);
  };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    auto left = number_at(a, i), right = number_at(b, j);
    if (left.empty() || right.empty()) {
      const Char x = small(a[i++]), y = small(b[j++]);
      if (x != y) return x < y ? -1 : 1;
      continue;
    }
    i += left.size();
    j += right.size();
    left.remove_prefix(std::min(left.size(), left.find_first_not_of(Char('0'))));
    right.remove_prefix(std::min(right.size(), right.find_first_not_of(Char('0'))));
    if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
    if (const int order = left.compare(right)) return order;
  }
  return static_cast<int>(i < a.size()) - static_cast<int>(j < b.size());
}

/// The same, as an order in which no two different names are equal.
inline bool naturally_before(std::string_view a, std::string_view b) {
  const int order = compare_naturally(a, b);
  return order != 0 ? order < 0 : a < b;
}

}  // namespace partita
