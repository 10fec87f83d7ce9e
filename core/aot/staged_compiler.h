#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/aot/run_compiled.h"
#include "core/schedule/plan.h"

namespace partita {

/// What was found out about a step of a plan by running it.
struct StepMeasure {
  double seconds = 0;   ///< the median of the runs, work that follows a call included
  std::string library;  ///< of calls: what does it, "oneDNN brg:avx512_core", "interpreter"
  std::string why_not;  ///< why no library does it, although one has the operator
};

/// A form in which a compiler can print the code of a step: a row for each that `kernels --show` knows.
struct KernelForm {
  std::string name;   ///< "llvm"
  std::string title;  ///< "LLVM IR"
  /// Null when the step has no code of its own: a call without work on its result. The lines' numbers count the nodes
  /// of step_origins().
  std::function<Result<std::optional<loops::LinkedText>>(const schedule::Plan&, std::size_t step)> text;
};

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
  std::vector<KernelForm> forms = {};  ///< from what is planned to what runs
  struct Measured {
    std::vector<StepMeasure> steps;  ///< by step of the plan
    std::vector<Value> results;      ///< of the last run, which alone writes to `inputs`
  };
  /// Compiles a plan and runs it several times, for about `seconds`.
  std::function<Result<Measured>(const Planned&, const std::vector<Value>& inputs, double seconds)> measure = {};
  /// Bytes beside the plan's buffers.
  struct Scratch {
    std::size_t kernels = 0;  ///< kept from run to run: the most that a kernel needs, for all threads
    std::size_t calls = 0;    ///< the most that one call takes while it runs
  };
  std::function<Result<Scratch>(const Planned&)> scratch = {};
};

}  // namespace partita
