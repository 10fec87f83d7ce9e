#pragma once
// Which pass or kernel of a compiler is to blame for a small graph's failure.
#include <functional>

#include "core/aot/staged_compiler.h"
#include "core/minify/oracle.h"
#include "core/minify/repro.h"

namespace partita::minify {

/// Bisects: over passes by stopping after each, over the plan's steps by leaving the later ones out. A step is to blame
/// when what it writes differs from what the reference executor of plans writes, or when compiling or running it fails
/// as the graph does. When every step does what is planned, the call that fails by itself names the lowering. `oracle`
/// makes an oracle out of a compiler, as the one that found the failure.
Result<Culprit> find_culprit(const StagedCompiler& compiler, const std::function<Oracle(const CompileFn&)>& oracle,
                             const Candidate& candidate, const Failure& failure, const SameOptions& same,
                             const Progress* progress = nullptr);

}  // namespace partita::minify
