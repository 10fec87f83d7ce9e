#pragma once
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// A compiled graph. Takes the values of the placeholders and returns what the graph returns, flattened. A copy_ in the
/// graph writes to the inputs' storages.
using CompiledFn = std::function<Result<std::vector<Value>>(std::vector<Value> inputs)>;
/// Compiles a functional ATen graph, like aot_function's fw_compiler and bw_compiler. The graph must outlive the
/// result.
using CompileFn = std::function<Result<CompiledFn>(const Graph& graph)>;

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
