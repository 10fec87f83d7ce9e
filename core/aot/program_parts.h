#pragma once
// What a run of a program is made of: by AOTAutograd and a compiler, or from the caches of both.
#include <functional>
#include <memory>

#include "core/aot/autograd_cache.h"
#include "core/aot/run_program.h"
#include "core/aot/wrapper.h"

namespace partita {

struct ProgramParts {
  std::shared_ptr<const AotGraphs> graphs;  ///< null from the cache
  AotSummary summary;
  Wrappers wrappers;                        ///< the inner layers
  std::optional<ConstantsGraph> constants;  ///< as AotGraphs has it
  CompiledFn forward;
  std::function<Result<CompiledFn>()> backward;  ///< compiles it; empty without one
};

/// `graph`: as wrap_inputs() left it. `how`: options.aot, as the run needs it.
Result<ProgramParts> make_parts(const Graph& graph, const std::shared_ptr<const ExportedProgram>& program,
                                const AotOptions& how, const RunOptions& options);

}  // namespace partita
