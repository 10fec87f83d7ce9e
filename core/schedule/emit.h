#pragma once
#include <vector>

#include "core/schedule/group.h"

namespace partita::schedule {

/// A kernel and the definitions whose memory its buffers (without scratch) are.
struct Emitted {
  loops::Kernel kernel;
  std::vector<int> memory;
};

/// The loops of a group of stages.
Emitted emit(const LoweredGraph& g, const Stages& stages, const Group& group);
/// The loops of one write of a Writes definition.
Emitted emit(const LoweredGraph& g, const Stages& stages, int definition, std::size_t write);

}  // namespace partita::schedule
