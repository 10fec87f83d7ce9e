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

/// A compiler that can be stopped between its steps.
struct StagedCompiler {
  std::vector<std::string> passes;                       ///< in order
  std::function<CompileFn(int stop_after)> with_passes;  ///< runs only the first stop_after passes
  /// Runs all passes and makes the plan. Returns the graph after the passes. Concrete sizes only.
  using Planned = std::pair<std::shared_ptr<const Graph>, schedule::Plan>;
  std::function<Result<Planned>(const Graph&)> plan;
  /// Compiles and runs a plan.
  std::function<Result<std::vector<Value>>(const schedule::Plan&, const std::map<std::string, Tensor>& constants,
                                           const std::vector<Value>& inputs)>
      run_plan;
};

}  // namespace partita
