#pragma once
#include "app/tasks/run_artefact.h"
#include "core/aot/run_program.h"

namespace partita {

/// Runs the program by what `options` has in place of compilers. An inference graph that calls operators of a user's
/// module (--python-import) runs as the file has it, since what AOTAutograd does needs to know what a call writes.
Result<TensorFile> run_visited(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                               const RunOptions& options);

}  // namespace partita
