#pragma once
// Measures what rounding alone does to a graph's results, to separate differences from errors in ill-conditioned
// graphs.
#include <optional>
#include <vector>

#include "core/compare/compare.h"
#include "core/ir/graph.h"

namespace partita {

/// For each tensor output, row-major, how far each element moves at most while the graph runs in double with its inputs
/// and the results of its calls shifted at random. A shift is two units in the last place of the dtype, which vector
/// libraries promise of functions (one unit of half types). A number computed from n others, such as a sum, shifts
/// sqrt(n) times as far, because its order of summation is not specified. Infinite where an element becomes finite or
/// ceases to be, or might in another order of the factors of a product. `exact` holds the results in double. With
/// `halves`, inputs of half types shift by their own unit too, for kernels that round to the tensors' dtype on the way,
/// as many of PyTorch's do; ours compute in float32 or better. Empty for an
/// output whose size the shifts change. Nullopt if the graph cannot be run this way.
std::optional<std::vector<std::vector<double>>> moved_by_rounding(const Graph& graph, const std::vector<Value>& inputs,
                                                                  const std::vector<Value>& exact, bool halves = false);

/// Is each element of `v` within the tolerance of `exact`, plus four times what rounding `moved` it? If not, `v` holds
/// other numbers than the graph asks for, or the graph was run wrongly in double.
bool explained_by_rounding(const Tensor& exact, const Tensor& v, const Tolerance& tolerance,
                           const std::vector<double>& moved);

}  // namespace partita
