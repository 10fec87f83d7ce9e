#pragma once
#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

namespace partita {

/// What `f`, a function or a member, gives for each item.
auto mapped(const auto& items, const auto& f) {
  std::vector<std::decay_t<decltype(std::invoke(f, *std::begin(items)))>> out;
  for (const auto& item : items) out.push_back(std::invoke(f, item));
  return out;
}

}  // namespace partita
