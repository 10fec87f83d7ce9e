#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita::fuzz {

/// Changes one thing of a graph, the same for the same seed: a number, dtype, list or tensor among the arguments of a
/// call, or a size or stride of an input, which then gets other values. Returns what was changed; empty when nothing
/// could be.
std::string mutate(Graph& graph, std::vector<Value>& inputs, std::uint64_t seed);

}  // namespace partita::fuzz
