#pragma once
// What the kernels of another compiler have to move and compute, by the metas of the nodes that they are made of.
#include <optional>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace partita {

struct CallCost {
  double bytes = 0;       ///< read and written in memory, each value once
  double operations = 0;  ///< arithmetic of scalars, as operations_of() counts it
};

/// The cost of each kernel of a graph, which is given by the nodes that it computes. A value that another kernel needs,
/// or that the graph returns, is written by the first kernel that has it; a kernel reads what its nodes take from
/// others. Views cost nothing, and a gather reads no more than it gives. Sizes that are symbols count as their hints.
/// Nullopt where no node of a kernel is in the graph.
std::vector<std::optional<CallCost>> call_costs(const Graph& graph,
                                                const std::vector<std::vector<std::string>>& kernels);

}  // namespace partita
