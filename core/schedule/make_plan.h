#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/config.h"
#include "core/base/result.h"
#include "core/schedule/plan.h"

namespace partita::schedule {

struct PlanOptions {
  /// Values of symbols; the plan is valid only for these. Symbols that are not named take their hints.
  std::map<std::string, std::int64_t> sizes;
  loops::Target target;
  bool fuse = config().fuse;  ///< false: each definition that needs a loop gets a kernel of its own
  /// Sizes stay symbols, and `sizes` only decides between plans. What was decided stands in Plan::guards. Such
  /// a plan has no memory; instantiate() makes one that runs.
  bool symbolic = false;
};

/// Makes a plan of kernels, calls and memory for a functional ATen graph, whose only mutations are copy_ of inputs at
/// its end. Errors name the node: ops.unknown, schedule.*.
Result<Plan> make_plan(const Graph& graph, const PlanOptions& options = {});

}  // namespace partita::schedule
