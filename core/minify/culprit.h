#pragma once
// Finds the pass or kernel of a compiler that makes a small graph fail.
#include <functional>

#include "core/aot/staged_compiler.h"
#include "core/minify/oracle.h"
#include "core/minify/repro.h"

namespace partita::minify {

/// Bisects over passes by stopping after each, and searches the plan's steps by running only the first ones. A step is
/// to blame when it writes other values than the reference executor of plans, or when compiling or running it fails as
/// the graph does. If every step does what is planned, the call that fails alone names the lowering. `oracle` makes an
/// oracle for a compiler, like the one that found the failure.
Result<Culprit> find_culprit(const StagedCompiler& compiler, const std::function<Oracle(const CompileFn&)>& oracle,
                             const Candidate& candidate, const Failure& failure, const SameOptions& same,
                             const Progress* progress = nullptr);

}  // namespace partita::minify
