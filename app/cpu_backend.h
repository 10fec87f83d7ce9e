#pragma once
#include <map>
#include <memory>
#include <string>

#include "app/backends.h"
#include "core/schedule/make_plan.h"

namespace partita {

/// The CPU compiler as a CompileFn: post-grad passes, plan, machine code. Graphs with symbolic sizes are planned anew
/// for each set of sizes they meet.
CompileFn cpu_compiler(const BackendOptions& options);
/// With only the first `stop_after` passes: for who looks for the guilty one.
CompileFn cpu_compiler(const BackendOptions& options, int stop_after);

/// The graph as the CPU compiler sees it after all passes, and its plan. Error backend.symbolic when sizes are not
/// concrete.
struct PlannedGraph {
  std::shared_ptr<const Graph> graph;
  schedule::Plan plan;
};
Result<PlannedGraph> plan_for_cpu(const Graph& graph, const BackendOptions& options);

/// How that compiler plans a graph: for the caches and the convolutions of this machine. `sizes`: of symbols.
schedule::PlanOptions plan_for_this_machine(std::map<std::string, std::int64_t> sizes = {});

}  // namespace partita
