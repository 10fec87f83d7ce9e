#pragma once
#include <vector>

#include "core/aot/aot.h"

namespace partita {

/// May a compiled graph write its inputs itself? Not complex ones: compiled code has no complex arithmetic, which
/// includes copy_.
bool can_write_inputs(const Graph& graph);

/// Runs any graph of ATen calls, including in-place and composite ones, by a compiler of functional graphs. A
/// functional joint graph is compiled as it is.
Result<std::vector<Value>> run_compiled(const Graph& graph, std::vector<Value> inputs, const CompileFn& compile);

/// Runs a graph as it stands, on any backend: a functional graph is compiled as it is, so that its nodes are those that
/// run; others as run_compiled() does, unless the backend `takes_any_graph`.
Result<std::vector<Value>> run_graph(const Graph& graph, std::vector<Value> inputs, const CompileFn& compile,
                                     bool takes_any_graph);

}  // namespace partita
