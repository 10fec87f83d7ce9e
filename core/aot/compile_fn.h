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

}  // namespace partita
