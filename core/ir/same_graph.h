#pragma once
#include <string>

#include "core/ir/graph.h"

namespace partita {

/// Says whether two graphs have the same FX text: names, operators, arguments, targets, annotations, recompute tags,
/// origins, outputs and sub graphs. `why` (may be null) receives the first difference.
bool same_graph(const Graph& a, const Graph& b, std::string* why = nullptr);

}  // namespace partita
