#pragma once
#include "views/window/tools.h"

namespace partita {

/// Times the nodes of a graph, and asks which kernels the compiler plans for them.
///
/// The seconds are those of the interpreter: the least of up to five runs, fewer when one takes long. Inputs are
/// copied. The kernels are those that the compiler would make after its passes: "k3_relu_add", or "library: addmm" for
/// a call. Views and nodes that passes removed have none. Errors are interpret()'s; those of passes and planning are in
/// `kernels`.
Result<views::NodeMeasures> measure_nodes(const Graph& graph, const std::vector<Value>& inputs,
                                          const Progress& progress);

}  // namespace partita
