#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/ir/graph.h"

namespace partita {

/// What a graph computes from its fixed inputs only, as a graph of its own, which is run once.
struct ConstantsGraph {
  std::shared_ptr<const Graph> graph;
  std::vector<std::size_t> inputs;  ///< by placeholder of it: the place of the whole graph's input
};

/// Splits an inference graph as PyTorch's split_const_gm does: what depends on the inputs at these places and on no
/// other moves into a graph of its own, whose results the graph takes as further inputs at its end, named
/// _FOLDED_CONST_NAME. Stays where it is: views, which cost nothing, what depends on no input, which is folded, random
/// and written values, and what is larger than both `limit_bytes` and the inputs that it is made of (in between, twice
/// as large). Nullopt when there is nothing to move.
std::optional<ConstantsGraph> split_constants(Graph& graph, const std::vector<std::size_t>& fixed,
                                              std::size_t limit_bytes);

}  // namespace partita
