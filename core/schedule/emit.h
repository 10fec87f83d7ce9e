#pragma once
#include <vector>

#include "core/schedule/group.h"

namespace partita::schedule {

/// A kernel, and for each of its buffers (without scratch) the definition whose memory it is.
struct Emitted {
  loops::Kernel kernel;
  std::vector<int> memory;
};

/// Emits the loops of a group of stages.
Emitted emit(const LoweredGraph& g, const Stages& stages, const Group& group);
/// Emits the loops of one write of a Writes definition.
Emitted emit(const LoweredGraph& g, const Stages& stages, int definition, std::size_t write);

}  // namespace partita::schedule
