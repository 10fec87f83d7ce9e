#pragma once
#include <memory>
#include <vector>

#include "core/schedule/group.h"

namespace partita::schedule {

/// Distributes the units over groups, in an order that can run. Calls and writes are groups of their own. If `fuse` is
/// false, so is every stage.
std::vector<Group> fuse(const LoweredGraph& g, const Stages& stages, bool fuse);

}  // namespace partita::schedule
