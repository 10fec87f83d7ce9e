#pragma once
#include <vector>

#include "core/aot/aot.h"

namespace partita {

/// A forward's values made what the user gets: mutated inputs are written (into their memory; an input whose sizes
/// change is replaced in `inputs`), and outputs that alias inputs show their memory, as PyTorch's runtime wrapper
/// (gen_alias_from_base) has them do. `values` begin with what the functional graph
/// returns and may go on with saved values.
Result<std::vector<Value>> finish_forward(const AotGraphs& graphs, const std::vector<Value>& values,
                                          std::vector<Value>& inputs);

/// May a compiled graph write its inputs itself? Compiled code computes with no complex numbers, a copy_ of them
/// included.
bool can_write_inputs(const Graph& graph);

/// Runs any graph of ATen calls, in-place and composite ones too, by a compiler of functional graphs. A functional
/// joint graph is compiled as it stands.
Result<std::vector<Value>> run_compiled(const Graph& graph, std::vector<Value> inputs, const CompileFn& compile);

}  // namespace partita
