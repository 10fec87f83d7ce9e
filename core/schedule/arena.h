#pragma once
#include <cstddef>
#include <vector>

namespace partita::schedule {

/// Memory that is needed from step `first` to step `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct Arena {
  std::vector<std::size_t> offsets;  ///< 64-byte aligned, in the order of the lifetimes
  std::size_t bytes = 0;
};

/// Places memory so that blocks with overlapping lifetimes do not overlap: the largest block first, each into the
/// smallest gap that holds it.
Arena place(const std::vector<Lifetime>& lifetimes);

}  // namespace partita::schedule
