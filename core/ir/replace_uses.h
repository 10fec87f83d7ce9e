#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Every reader of `node` reads `value` instead. Of a list or tuple, the getitems of `node` take their items and are
/// erased. The node itself stays. Error ir.getitem: an item that the list does not have.
Status replace_uses(Node& node, const Arg& value);

}  // namespace partita
