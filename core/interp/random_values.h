#pragma once
#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// A value that fits a meta, the same for the same seed on every machine. Floats are normal with deviation 0.1 (around
/// 1 for vectors, so that variances and scales are positive), integers 0 or 1 (indices stay in range; vectors of them
/// rise from 0, as offsets must), symbols take their hints. Error interp.random when a size has no hint or the meta is
/// not known.
Result<Value> random_value(const Meta& meta, const ShapeEnv& shapes, std::uint64_t seed);
/// Gives the symbols of the inputs' sizes that have no hint (text names them and no more) the value 8, or what is next
/// to it in their ranges. Data-dependent symbols (u0) get none.
void choose_sizes(const Graph& graph);
/// As torch._functorch.compilers.get_inputs makes it: integers and truths are randint(0, 1), which is 0, all others
/// uniform in [0, 1). The meta's strides are kept.
Result<Value> get_input(const Meta& meta, std::uint64_t seed);
/// One for each placeholder; sizes without a hint are chosen.
Result<std::vector<Value>> random_inputs(const Graph& graph, std::uint64_t seed);

}  // namespace partita
