#pragma once
#include <cstddef>

#include "core/ir/graph.h"

namespace partita {

/// Keeps the first of calls that compute the same from the same; later ones' readers read it. Left alone: random calls,
/// empty, mutable calls and calls on memory written in between, values whose memory the graph returns (they stay apart
/// as they are in eager), and unbacked numbers. Returns how many calls went.
std::size_t merge_common_subexpressions(Graph& graph);

}  // namespace partita
