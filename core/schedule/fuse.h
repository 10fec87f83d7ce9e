#pragma once
#include <memory>
#include <vector>

#include "core/schedule/group.h"

namespace partita::schedule {

/// Distributes the units over groups, in an order that can run. Calls and writes stay alone. With `fuse` false every
/// stage is a group of its own.
std::vector<Group> fuse(const LoweredGraph& g, const Stages& stages, bool fuse);

}  // namespace partita::schedule
