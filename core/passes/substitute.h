#pragma once
#include "core/ir/graph.h"
#include "core/passes/aliases.h"

namespace partita {

/// The law of every local rewrite: `replacement` may stand for `node` when readers see the same dtype, sizes and
/// strides and memory is shared by nobody who did not share it before. Metas must be known.
bool may_stand_for(const Node& replacement, const Node& node, const Aliases& aliases);

/// The node's arguments in schema order with defaults; empty when it has no schema or they do not fit.
Args bound_arguments(const Node& node);

}  // namespace partita
