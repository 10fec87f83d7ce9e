#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita::schedule {

/// A graph cut at a call whose result has sizes, or is a number, that only values decide (nonzero, item). Each part
/// takes values from a pool: the graph's inputs, then what `before` returns, then what `call` returns. The first two
/// lists of inputs may name no value that is not there yet.
struct SplitGraph {
  std::unique_ptr<Graph> before;  ///< what stands before the call; null if nothing does
  std::unique_ptr<Graph> call;
  std::unique_ptr<Graph> after;  ///< the rest, whose outputs are the graph's; the new sizes are symbols of its inputs
  std::vector<std::size_t> before_inputs, call_inputs, after_inputs;
};

/// Cuts at the first such call; nullopt when there is none. Precondition: metas are known. Views and numbers that both
/// sides need are computed in both, so that each part knows which memory is an input's.
std::optional<SplitGraph> split_at_values(const Graph& graph);

}  // namespace partita::schedule
