#pragma once
#include "views/picture/picture.h"

namespace partita::views {

/// Groups runs of neighbouring nodes into nested frames: by module path, or without one by file and source line, where
/// lines that repeat (the layers of a stack) form blocks. Runs are contiguous in execution order, so that folding one
/// cannot make a cycle. A frame that would hold a whole side is left out. `frame_of` (by node id) is the innermost
/// frame of each node, -1 for none.
std::vector<Frame> make_frames(const Graph& graph, const std::function<Side(const Node&)>& side_of,
                               const std::unordered_set<std::string>& folded, std::vector<int>& frame_of);

/// The frames to fold for an overview. Of all being folded it opens what is largest, as long as `fits` says of the
/// folds that it may; frames of one kind (layers.0, layers.1) open together. Frames inside folded ones are folded too
/// when they are large, so that opening one shows its parts. `open`: with nothing folded.
std::unordered_set<std::string> overview_folds(const Picture& open,
                                               const std::function<bool(const std::unordered_set<std::string>&)>& fits);

}  // namespace partita::views
