#pragma once
#include <cstdint>

#include "core/ir/graph.h"

namespace partita {

/// Equal for graphs that do the same in the same order: operators, arguments, metas, outputs, sub graphs. Names,
/// origins and the values of attributes do not count. The same in every process.
std::uint64_t structural_hash(const Graph& graph);

}  // namespace partita
