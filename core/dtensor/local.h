#pragma once
#include <memory>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Replaces the whole tensors between _dtensor.from_local and _dtensor.to_local of a functional or joint graph by what
/// the rank has of them, and the calls on them by calls on that, with collectives where placements change. Placeholders
/// and outputs stay. Errors: dtensor.rule names an operator without a rule for its arguments' placements;
/// dtensor.differs, placements that the text prints otherwise.
Result<std::unique_ptr<Graph>> on_local_tensors(const Graph& graph);

/// Refuses calls that write, in a graph of with_local_inputs(), but for those to inputs that no DTensor is made of:
/// whether what is written shares memory with a DTensor is not followed. Error dtensor.write.
Status refuse_writes(const Graph& graph);

}  // namespace partita
