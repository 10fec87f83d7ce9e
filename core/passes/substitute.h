#pragma once
#include "core/ir/graph.h"
#include "core/passes/aliases.h"

namespace partita {

/// The condition of every local rewrite: `replacement` may stand for `node` if readers see the same dtype, sizes and
/// strides, and no two values newly share memory. Metas must be known.
bool may_stand_for(const Node& replacement, const Node& node, const Aliases& aliases);

/// The node's arguments in schema order, with defaults. Empty when it has no schema or the arguments do not fit.
Args bound_arguments(const Node& node);

}  // namespace partita
