#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/sym/sym_expr.h"

namespace partita::codegen {

/// The step of `e` from one lane to the next, when the lanes of a vector hold var = v, v + 1, ... and v is a multiple
/// of `lanes`; nullopt when steps differ. Quotients and remainders are uniform or linear if no lane crosses a boundary.
std::optional<SymExpr> lane_step(SymExpr e, const std::string& var, std::int64_t lanes);

/// A number that divides `e` whenever var is a multiple of `lanes`; 0 for a constant zero.
std::int64_t divisor(SymExpr e, const std::string& var, std::int64_t lanes);

bool mentions(SymExpr e, const std::string& var);

struct IndexRange {
  std::int64_t low, high;
};
/// Bounds of `e`; they also hold for all its parts. `extent` gives the known iterations of a loop variable. nullopt:
/// unknown.
std::optional<IndexRange> index_range(SymExpr e,
                                      const std::function<std::optional<std::int64_t>(const std::string&)>& extent);

}  // namespace partita::codegen
