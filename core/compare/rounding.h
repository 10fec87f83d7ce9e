#pragma once
// Measures what rounding alone does to a graph's results, to separate differences from errors in ill-conditioned
// graphs.
#include <optional>
#include <vector>

#include "core/compare/compare.h"
#include "core/ir/graph.h"

namespace partita {

/// Row-major, per element of each output: the farthest that it moves when the graph, computed in double, has its inputs
/// and the results of its calls shifted at random by two units in the last place of their dtypes, which is what vector
/// libraries promise of functions (one unit of half types: a rounding that fell the other way); infinite where it
/// becomes or ceases to be finite, or may in another order of the factors of a product. A number made of n, like a sum,
/// is shifted sqrt(n) times as far: in what order it is added up is nobody's promise (torch.compile's sums differ from
/// eager's as ours do). Nullopt when it cannot be computed; outputs that are no tensors have no elements. `exact`: the
/// results in double. `halves`: inputs of half types are shifted by their own units too, for kernels that round to
/// their tensors' dtype on the way, as many of PyTorch's do; ours compute in float32 or better.
std::optional<std::vector<std::vector<double>>> moved_by_rounding(const Graph& graph, const std::vector<Value>& inputs,
                                                                  const std::vector<Value>& exact, bool halves = false);

/// Is every element of `v` no farther from `exact` than the tolerance and four times what rounding `moved` it? Where
/// not, another number was computed, or the graph was run wrongly in double.
bool explained_by_rounding(const Tensor& exact, const Tensor& v, const Tolerance& tolerance,
                           const std::vector<double>& moved);

}  // namespace partita
