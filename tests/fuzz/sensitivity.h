#pragma once
// What rounding alone does to a graph's results: how differences are told from errors where a graph is ill-conditioned.
#include <optional>
#include <vector>

#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita::fuzz {

/// Row-major, per element of each output: the farthest that it moves when the graph, computed in double, has its inputs
/// and the results of its calls shifted at random by two units in the last place of their dtypes (one for half types,
/// where that is a rounding that fell the other way); infinite where it becomes or ceases to be finite. What the
/// functions of vector libraries promise is of that size. Nullopt when it cannot be computed; outputs that are no
/// tensors have no elements. `exact`: the results in double.
std::optional<std::vector<std::vector<double>>> moved_by_rounding(const Graph& graph, const std::vector<Value>& inputs,
                                                                  const std::vector<Value>& exact);

}  // namespace partita::fuzz
