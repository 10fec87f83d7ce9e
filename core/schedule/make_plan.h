#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/result.h"
#include "core/schedule/plan.h"

namespace partita::schedule {

struct PlanOptions {
  /// Values of symbols; the plan holds for these sizes. Symbols that are not named take their hints.
  std::map<std::string, std::int64_t> sizes;
  loops::Target target;
  bool fuse = true;  ///< false: each definition that needs a loop gets a kernel of its own
};

/// A functional ATen graph (mutation only as copy_ of inputs at its end) as kernels and calls over planned memory.
/// Errors name the node: ops.unknown, schedule.*.
Result<Plan> make_plan(const Graph& graph, const PlanOptions& options = {});

}  // namespace partita::schedule
