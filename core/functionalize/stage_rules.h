#pragma once
#include "core/ir/stage.h"
#include "core/ir/verify.h"

namespace partita {

/// Structure, then the rules of the stage. Collects every violation; a pass may not leave one behind.
std::vector<Diagnostic> verify(const Graph& graph, Stage stage);

/// Called where a graph reaches a stage: while the configuration's `verify` is on, the first violation as an internal
/// error, the others in its notes.
Status check_stage(const Graph& graph, Stage stage);

}  // namespace partita
