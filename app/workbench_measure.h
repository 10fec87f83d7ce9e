#pragma once
// What a run and a plan tell about single nodes.
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// Seconds each node takes in the interpreter, by node name: the least of up to five runs, fewer when one takes long.
/// Inputs are copied. Errors are interpret()'s.
Result<std::unordered_map<std::string, double>> time_nodes(const Graph& graph, const std::vector<Value>& inputs,
                                                           const Progress& progress);

/// The kernel each node becomes part of, by node name, as the compiler would plan it after its passes: "k3_relu_add",
/// or "library: addmm" for a call. Views and what passes removed have none. Errors are the passes' and make_plan's.
Result<std::unordered_map<std::string, std::string>> kernels_of_nodes(const Graph& graph);

}  // namespace partita
