#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// What a run and a plan say about single nodes, by node name.
struct NodeMeasures {
  std::unordered_map<std::string, double> seconds;
  /// The kernel that each node becomes part of, or why the compiler has no plan for the graph.
  Result<std::unordered_map<std::string, std::string>> kernels;
};

/// Times the nodes of a graph, and asks which kernels the compiler plans for them.
///
/// The seconds are those of the interpreter: the least of up to five runs, fewer when one takes long. Inputs are
/// copied. The kernels are those that the compiler would make after its passes: "k3_relu_add", or "library: addmm" for
/// a call. Views and nodes that passes removed have none. Errors are interpret()'s; those of passes and planning are in
/// `kernels`.
Result<NodeMeasures> measure_nodes(const Graph& graph, const std::vector<Value>& inputs, const Progress& progress);

}  // namespace partita
