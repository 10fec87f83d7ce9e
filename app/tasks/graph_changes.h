#pragma once
#include <string>

#include "core/ir/graph.h"

namespace partita {

/// Removed ("- ") and added ("+ ") statements, as a diff by lines; `indent` stands before each line.
std::string graph_changes(const Graph& before, const Graph& after, std::string_view indent = "");

}  // namespace partita
