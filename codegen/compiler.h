#pragma once
#include "codegen/backends.h"

namespace partita {

class CompiledGraph;

/// A backend's compiler as a CompileFn: post-grad passes, plan, code. A graph with symbolic sizes gets a new plan for
/// each set of sizes that it is run with. Where the backend's device cannot be opened, each graph is refused by the
/// error of Machine::open().
CompileFn compiler(const Backend& backend, const BackendOptions& options);
/// The compiled graph itself, for callers who say where results are to lie. `options` may not ask for a worker.
Result<std::shared_ptr<CompiledGraph>> compile_graph(const Backend& backend, const Graph& graph,
                                                     const BackendOptions& options);
/// Its cache; null where there is none: without a store, and for workers.
std::shared_ptr<const GraphCache> compiler_cache(const Backend& backend, const BackendOptions& options);
/// The compiler in stages. Its plan() gives error backend.symbolic when sizes are not concrete.
StagedCompiler compiler_stages(const Backend& backend, const BackendOptions& options);

}  // namespace partita
