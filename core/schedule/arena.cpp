#include "core/schedule/arena.h"

#include <algorithm>
#include <numeric>

namespace partita::schedule {

Arena place(const std::vector<Lifetime>& lifetimes) {
  constexpr std::size_t alignment = 64;
  auto padded = [](std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  Arena arena;
  arena.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<std::size_t> placed;  // by offset
  for (std::size_t i : order) {
    const Lifetime& l = lifetimes[i];
    std::size_t size = padded(l.bytes), end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (std::size_t p : placed) {
      const Lifetime& other = lifetimes[p];
      if (other.last < l.first || other.first > l.last) continue;
      std::size_t at = arena.offsets[p];
      if (at >= end && at - end >= size && at - end < best_gap) {
        best = end;
        best_gap = at - end;
      }
      end = std::max(end, at + padded(other.bytes));
    }
    arena.offsets[i] = best == SIZE_MAX ? end : best;
    arena.bytes = std::max(arena.bytes, arena.offsets[i] + size);
    placed.insert(
        std::ranges::lower_bound(placed, arena.offsets[i], {}, [&](std::size_t p) { return arena.offsets[p]; }), i);
  }
  return arena;
}

}  // namespace partita::schedule
