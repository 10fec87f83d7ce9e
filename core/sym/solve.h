#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/sym/sym_expr.h"

namespace partita {

struct SymSolution {
  std::string symbol;
  std::optional<std::int64_t> value;  ///< nullopt: no whole number gives the sum this value
};
/// What the symbol of a sum a*s + b is where the sum has this value; nullopt for other expressions.
std::optional<SymSolution> solve(SymExpr e, std::int64_t value);

}  // namespace partita
