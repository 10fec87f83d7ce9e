#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/result.h"
#include "core/schedule/plan.h"

namespace partita::schedule {

struct PlanOptions {
  /// Values of symbols; the plan is valid only for these. Symbols that are not named take their hints.
  std::map<std::string, std::int64_t> sizes;
  /// The library computes convolutions with channels innermost: keep values between them in that layout where it is not
  /// visible outside.
  bool channels_last = false;
  /// Size of the machine's last-level cache; 0: unknown, then no store bypasses it.
  std::size_t cache_bytes = 0;
  bool fuse = true;  ///< false: each definition that needs a loop is a kernel of its own
};

/// Makes a plan of kernels, calls and memory for a functional ATen graph, whose only mutations are copy_ of inputs at
/// its end. Errors name the node: ops.unknown, schedule.*.
Result<Plan> make_plan(const Graph& graph, const PlanOptions& options = {});

}  // namespace partita::schedule
