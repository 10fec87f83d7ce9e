#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "app/backends.h"
#include "core/schedule/make_plan.h"

namespace partita {

/// The CPU compiler as a CompileFn: post-grad passes, plan, machine code. Graphs with symbolic sizes are planned anew
/// for each set of sizes they meet.
CompileFn cpu_compiler(const BackendOptions& options);

/// How that compiler plans a graph: for the caches and the convolutions of this machine. `sizes`: of symbols.
schedule::PlanOptions plan_for_this_machine(std::map<std::string, std::int64_t> sizes = {});

}  // namespace partita
