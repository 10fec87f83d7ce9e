#pragma once
#include "core/ir/graph.h"
#include "core/ops/schema.h"

namespace partita {

/// The node whose memory this call's result shares by its schema: what a view shows, what an in-place call wrote, also
/// through getitem of a tuple of views. Null when the result has memory of its own. May-alias composites (reshape,
/// contiguous) count as views only as far as their schema says so.
Node* aliased_input(const Node& node);
/// The end of the chain of aliased_input: the node whose memory this is.
Node* memory_owner(Node* node);
const Node* memory_owner(const Node* node);

}  // namespace partita
