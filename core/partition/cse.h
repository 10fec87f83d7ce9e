#pragma once
#include <cstddef>

#include "core/ir/graph.h"

namespace partita {

/// Merges calls of one operator with equal arguments: the first is kept, and the users of the others use it. Not merged
/// are random calls, aten.empty, mutable calls, calls between which memory is written, unbacked numbers, and values
/// whose memory the graph returns (eager PyTorch returns separate memory). Returns the number of calls removed.
std::size_t merge_common_subexpressions(Graph& graph);

}  // namespace partita
