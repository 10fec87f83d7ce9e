#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Refuses calls that write, in a graph of with_local_inputs(), but for those to inputs that no DTensor is made of:
/// whether what is written shares memory with a DTensor is not followed. Error dtensor.write.
Status refuse_writes(const Graph& graph);

}  // namespace partita
