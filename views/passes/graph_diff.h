#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "views/picture/paint.h"

namespace partita::views {

struct DiffLine {
  Change change = Change::None;
  std::string text;
  std::string node;
};

/// What a pass did to a graph. Nodes are compared by name; their order counts only where nodes were added or removed.
struct GraphDiff {
  std::unordered_map<std::string, Change> marks;  ///< Added and Changed, of nodes in `after`
  std::vector<DiffLine> lines;                    ///< statements of both; long runs of unchanged ones are left out
  int added = 0, removed = 0, changed = 0;
};
/// `context` unchanged statements are kept around a change.
GraphDiff diff(const Graph& before, const Graph& after, int context = 2);

}  // namespace partita::views
