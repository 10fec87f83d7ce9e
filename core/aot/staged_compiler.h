#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/aot/compile_fn.h"
#include "core/schedule/plan.h"

namespace partita {

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

}  // namespace partita
