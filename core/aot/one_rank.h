#pragma once
#include <cstdint>
#include <memory>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/tensor.h"

namespace partita {

/// Which rank of which job a graph of DTensors is made local for.
struct RankOfJob {
  Sizes mesh = {};         ///< empty: what the graph tells
  std::int64_t ranks = 0;  ///< of the job; 0: not known
  int rank = 0;
};

/// A graph of DTensors with the inputs and results of one rank (core/dtensor/enter.h); null for other graphs.
Result<std::unique_ptr<Graph>> of_one_rank(const Graph& graph, const RankOfJob& job = {});
/// The forward of such a graph as it runs: ATen calls on the rank's own tensors, and collectives. Null for other
/// graphs.
Result<std::unique_ptr<Graph>> forward_of_rank(const Graph& graph);

}  // namespace partita
