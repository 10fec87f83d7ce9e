#pragma once
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/schema/schema.h"

namespace partita {

/// The node whose memory the result of this call shares by its schema: the base of a view, the argument that an
/// in-place call writes; also through a getitem of a tuple of views. Null when the result has memory of its own.
/// Composites that may alias (reshape, contiguous) count as views only where their schema says so.
Node* aliased_input(const Node& node);
/// The tensors that the call writes by its schema, `out` keywords included.
std::vector<Node*> written_by(const Node& call);
/// The end of the chain of aliased_input: the node whose memory this is.
Node* memory_owner(Node* node);
const Node* memory_owner(const Node* node);

/// Who else has to do with the memory of a node, in the order of execution.
struct MemoryUse {
  std::vector<const Node*> writers, views;
};
/// By memory_owner. Memory that nothing writes and of which nothing is a view is left out.
using MemoryUses = std::unordered_map<const Node*, MemoryUse>;
MemoryUses memory_uses(const Graph& graph);

}  // namespace partita
