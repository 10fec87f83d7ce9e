#pragma once
// The memory of a step as PyTorch's own generated code holds it.
#include <optional>

#include "app/tasks/kernels.h"

namespace partita {

/// What the user's run held, read from the code that inductor left beside the artefact: of a training step the forward
/// and the backward, of inference the one graph. `held` is what is in use where most is; steps are the calls of
/// kernels. Not in it: what a kernel takes for itself, and what an allocator keeps. nullopt: there is no such code.
/// Errors: those of read_wrapper_memory().
struct CodeMemory {
  StepMemory memory;
  std::vector<std::string> unknown;  ///< calls whose results have sizes that nothing tells; they count as nothing
};
Result<std::optional<CodeMemory>> code_memory(const Loaded& loaded, const Artefact& artefact);

}  // namespace partita
