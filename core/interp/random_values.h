#pragma once
#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// A random value for a meta; the same seed gives the same value on every machine. Floats are normal with deviation 0.1
/// (vectors around 1, so that variances and scales are positive). Integers are 0 or 1, so that indices are in range;
/// integer vectors rise from 0, as offsets must. Symbols take their hints. Error interp.random when a size has no hint
/// or the meta is unknown.
Result<Value> random_value(const Meta& meta, const ShapeEnv& shapes, std::uint64_t seed);
/// A tensor of the meta's sizes, as hints give them, whose elements are all `value`. Error interp.random as above.
Result<Value> filled_value(const Meta& meta, const ShapeEnv& shapes, double value);
/// Gives symbols in the inputs' sizes that have no hint (text only names them) the value 8, or the nearest value in
/// their range. Data-dependent symbols (u0) get none.
void choose_sizes(const Graph& graph);
/// Makes an input as torch._functorch.compilers.get_inputs does: integers and bools are randint(0, 1), which is 0, all
/// others are uniform in [0, 1). Keeps the meta's strides.
Result<Value> get_input(const Meta& meta, std::uint64_t seed);
/// One value per placeholder. Sizes without a hint are chosen by choose_sizes().
Result<std::vector<Value>> random_inputs(const Graph& graph, std::uint64_t seed);

}  // namespace partita
