#pragma once
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// A compiled graph: values of the placeholders in, what the graph returns (flattened) out. A copy_ in the graph writes
/// into the inputs' storages.
using Executable = std::function<Result<std::vector<Value>>(std::vector<Value> inputs)>;
/// Makes a functional ATen graph runnable, as aot_function's fw_compiler and bw_compiler. The graph outlives the
/// result.
using CompileFn = std::function<Result<Executable>(const Graph& graph)>;

}  // namespace partita
