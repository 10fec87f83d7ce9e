#pragma once
#include "core/ir/graph.h"

namespace partita {

/// Does running this node have an effect besides its value: does it write memory, draw random numbers, raise or print?
/// True for unknown calls.
bool has_effect(const Node& node);

}  // namespace partita
