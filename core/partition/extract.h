#pragma once
#include "core/partition/joint_parts.h"
#include "core/partition/partition.h"

namespace partita {

/// Builds forward and backward for a choice of saved values. Fills forward, backward, saved (with `why`), saved_symbols
/// and recomputed. Drops saved values that the backward does not read, and adds the numbers that occur in its inputs'
/// sizes. Error partition.extract names a gradient that cannot be computed from the saved values.
Result<Partition> extract(const Graph& joint, const JointParts& parts, const std::vector<Node*>& saved,
                          const std::vector<const char*>& why, bool reorder_backward);

/// Fills `recomputed` and `recomputed_operations`: the calls of the backward that are also the forward's, by name.
void note_recomputed(Partition& partition);

}  // namespace partita
