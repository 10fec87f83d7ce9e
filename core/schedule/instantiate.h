#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/schedule/plan.h"

namespace partita::schedule {

/// Gives each temporary a place in the arena. Error when the plan's memory is more than the limit. Precondition: no
/// size is symbolic.
Status place_memory(Plan& plan);

/// The plan for one set of sizes, whose kernels are the same and read the symbols' values from Plan::symbols. Error
/// schedule.symbol when a symbol has no value, or a size is beyond 64 bits. The guards must hold for these values.
Result<Plan> instantiate(const Plan& symbolic, const std::map<std::string, std::int64_t>& sizes);
/// The same without verification, which needs the kernels.
Result<Plan> at_sizes(const Plan& symbolic, const std::map<std::string, std::int64_t>& sizes);

/// The value of an expression of symbols; nullopt when it is not a whole number of 64 bits, or a symbol has no value.
std::optional<std::int64_t> instance_value(SymExpr e, const std::map<std::string, std::int64_t>& sizes);

/// Those of the guards that do not hold for these values of their symbols.
std::vector<Guard> broken_guards(const std::vector<Guard>& guards, const std::map<std::string, std::int64_t>& sizes);

}  // namespace partita::schedule
