#pragma once
#include "views/graph/picture.h"

namespace partita::views {

/// Groups runs of neighbouring nodes that come from one module (or, without a module path, from one source line) into
/// nested frames. Runs are contiguous in execution order, so that folding one cannot make a cycle. `frame_of` (by node
/// id) is the innermost frame of each node, -1 for none; placeholders and constants join their first reader's.
std::vector<Frame> make_frames(const Graph& graph, const std::function<Side(const Node&)>& side_of,
                               const std::unordered_set<std::string>& folded, std::vector<int>& frame_of);

}  // namespace partita::views
