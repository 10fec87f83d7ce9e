#pragma once
#include <cstdint>

#include "core/ir/graph.h"

namespace partita {

/// Equal for graphs with the same calls in the same order: it covers operators, arguments, metas, outputs and sub
/// graphs, but not names, origins and the values of attributes. It is the same in every process.
std::uint64_t structural_hash(const Graph& graph);

}  // namespace partita
