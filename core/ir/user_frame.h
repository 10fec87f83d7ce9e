#pragma once
#include "core/ir/graph.h"

namespace partita {

/// Does the frame lie in the torch package?
bool is_of_torch(const StackFrame& frame);

/// For a node that the torch package calls in the user's name, such as a collective: the frame outside it that is
/// nearest, that of a node which reads the value or which it is made of, by as few calls as possible. Null where the
/// node's own frame is the user's, or none is near.
const StackFrame* nearest_user_frame(const Node& node);

}  // namespace partita
