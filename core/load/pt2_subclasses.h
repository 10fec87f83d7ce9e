#pragma once
// Tensor subclasses of a torch.export archive. Internal to core/load.
#include "core/load/program.h"

namespace partita::pt2 {

/// Gives the graph, in place of a parameter or buffer that consists of other tensors, those that it takes from it
/// (export.access_subclass_inner_tensor), as torchao's unwrap_tensor_subclass does: w.qdata of w.
void unwrap_subclasses(Graph& graph, ExportedProgram& program);

}  // namespace partita::pt2
