#pragma once
// Measures what rounding alone does to a graph's results, to separate differences from errors in ill-conditioned
// graphs.
#include <optional>
#include <vector>

#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita::fuzz {

/// For each element of each output, in row-major order: the largest distance that it moves when the graph is computed
/// in double and its inputs and the results of its calls are shifted at random by two units in the last place of their
/// dtypes, the error that vector libraries promise for functions (one unit for half types: a rounding in the other
/// direction). Infinite if the element becomes or ceases to be finite, or may do so in another order of the factors of
/// a product. A number made of n others, like a sum, is shifted sqrt(n) times as far, because the order of its
/// additions is unspecified (torch.compile's sums differ from eager's as Partita's do). nullopt when it cannot be
/// computed. Outputs that are not tensors have no elements. `exact` receives the results in double.
std::optional<std::vector<std::vector<double>>> moved_by_rounding(const Graph& graph, const std::vector<Value>& inputs,
                                                                  const std::vector<Value>& exact);

}  // namespace partita::fuzz
