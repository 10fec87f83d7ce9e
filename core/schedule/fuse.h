#pragma once
#include <map>
#include <utility>
#include <vector>

#include "core/schedule/group.h"

namespace partita::schedule {

struct Fusion {
  std::vector<Group> groups;
  /// Why two groups, by their numbers, are not one: what the first try to join them met. The smaller number is first.
  std::map<std::pair<std::size_t, std::size_t>, Apart> apart;
};

/// Distributes the units over groups, in an order that can run. Calls and writes are groups of their own. If `fuse` is
/// false, so is every stage.
Fusion fuse(const LoweredGraph& g, const Stages& stages, bool fuse);

}  // namespace partita::schedule
