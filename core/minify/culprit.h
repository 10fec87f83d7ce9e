#pragma once
// Which pass or kernel of a compiler is to blame for a small graph's failure.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/minify/oracle.h"
#include "core/minify/repro.h"
#include "core/schedule/plan.h"

namespace partita::minify {

/// A compiler that can be stopped half-way.
struct StagedCompiler {
  std::vector<std::string> passes;                       ///< in order
  std::function<CompileFn(int stop_after)> with_passes;  ///< runs only so many of them
  /// All passes and the plan; the graph is the one after the passes. Concrete sizes only.
  using Planned = std::pair<std::shared_ptr<const Graph>, schedule::Plan>;
  std::function<Result<Planned>(const Graph&)> plan;
  /// Compiles and runs a plan.
  std::function<Result<std::vector<Value>>(const schedule::Plan&, const std::map<std::string, Tensor>& constants,
                                           const std::vector<Value>& inputs)>
      run_plan;
};

/// Bisects: over passes by stopping after each, over the plan's steps by leaving the later ones out. A step is to blame
/// when what it writes differs from what the reference executor of plans writes, or when compiling or running it fails
/// as the graph does. When every step does what is planned, the call that fails by itself names the lowering. `oracle`
/// makes an oracle out of a compiler, as the one that found the failure.
Result<Culprit> find_culprit(const StagedCompiler& compiler, const std::function<Oracle(const CompileFn&)>& oracle,
                             const Candidate& candidate, const Failure& failure, const SameOptions& same,
                             const Progress* progress = nullptr);

}  // namespace partita::minify
