#pragma once
// Measures what rounding alone does to a graph's results, to separate differences from errors in ill-conditioned
// graphs.
#include <functional>
#include <vector>

#include "core/compare/compare.h"
#include "core/interp/interpreter.h"
#include "core/ir/graph.h"

namespace partita {

/// Runs the graph in double with its inputs and the results of its calls shifted at random, in another way for each
/// seed. A shift is two units in the last place of the dtype, which vector libraries promise of functions (one unit of
/// half types). A number computed from n others, such as a sum, shifts sqrt(n) times as far, because its order of
/// summation is not specified. A number that might overflow in another order of the factors of a product is infinite.
/// With `halves`, inputs of half types shift by their own unit too, for kernels that round to the tensors' dtype on the
/// way, as many of PyTorch's do; ours compute in float32 or better.
Result<std::vector<Value>> interpret_shifted(const Graph& graph, const std::vector<Value>& inputs, unsigned seed,
                                             bool halves, InterpOptions options = {});

/// For each tensor, row-major, how far rounding alone moves each element. Empty for a tensor whose size it changes.
using Moved = std::vector<std::vector<double>>;

/// The largest distances of 32 runs with shifted values from `exact`, the results in double. Infinite where an element
/// becomes finite or ceases to be. Fails when a run does.
Result<Moved> moved_by_rounding(const std::function<Result<std::vector<Value>>(unsigned seed)>& shifted_run,
                                const std::vector<Value>& exact);
/// The same with interpret_shifted().
Result<Moved> moved_by_rounding(const Graph& graph, const std::vector<Value>& inputs, const std::vector<Value>& exact,
                                bool halves = false);

/// Is each element of `v` within the tolerance of `exact`, plus four times what rounding `moved` it? If not, `v` holds
/// other numbers than the graph asks for, or the graph was run wrongly in double.
bool explained_by_rounding(const Tensor& exact, const Tensor& v, const Tolerance& tolerance,
                           const std::vector<double>& moved);

/// judge_by_baseline() where the expected side may be the wrong one: nothing is excused when its value is farther from
/// the run in double than rounding explains, which sets `expected_is_off`. `moved`, of the value's elements, is asked
/// for when it is needed; where it cannot be found, nothing is excused either. Error only when the work is cancelled.
Status judge_both_sides(Difference& d, const Value& exact, const Value& expected, const Value& found,
                        const Tolerance& tolerance, const std::function<Result<std::vector<double>>()>& moved);

}  // namespace partita
