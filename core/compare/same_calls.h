#pragma once
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace partita {

/// Compares two graphs by what they compute, whatever their nodes' names and order: the inputs' and outputs'
/// annotations, the calls (operators and arguments, defaults filled in) and what each output is made of. Returns one
/// line per difference, at most one for each operator, input and output.
std::vector<std::string> call_differences(const Graph& expected, const Graph& found);

}  // namespace partita
