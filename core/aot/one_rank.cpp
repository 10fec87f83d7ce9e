#include "core/aot/one_rank.h"

#include <fmt/format.h>

#include "core/aot/aot.h"
#include "core/dtensor/calls.h"
#include "core/dtensor/enter.h"

namespace partita {

Result<std::unique_ptr<Graph>> of_one_rank(const Graph& graph, const RankOfJob& job) {
  if (!has_dtensors(graph)) return std::unique_ptr<Graph>();
  TRY(Sizes sizes, mesh_of(graph, job.mesh, job.ranks));
  std::int64_t all = 1;
  for (const std::int64_t n : sizes) all *= n;
  if (job.rank >= all)
    return input_error("dtensor.mesh", fmt::format("the graph is of rank {}, and its mesh has {} ranks", job.rank, all),
                       {.graph = graph.name});
  return with_local_inputs(graph, Mesh{std::move(sizes), job.rank});
}

Result<std::unique_ptr<Graph>> forward_of_rank(const Graph& graph) {
  if (!has_dtensor_calls(graph)) return std::unique_ptr<Graph>();
  TRY(AotGraphs made, aot(graph, nullptr, {.train = false, .passes = false}));
  return std::move(made.partition.forward);
}

}  // namespace partita
