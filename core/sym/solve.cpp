#include "core/sym/solve.h"

#include "core/sym/sym_node.h"

namespace partita {

std::optional<SymSolution> solve(SymExpr e, std::int64_t value) {
  if (e.is_int() || e.is_float()) return std::nullopt;
  SymSolution out;
  std::int64_t factor = 0, rest = value;
  for (SymExpr term : e.kind() == SymKind::Add ? e.args() : std::span<const SymExpr>(&e, 1)) {
    if (term.is_int()) {
      if (__builtin_sub_overflow(rest, term.as_int(), &rest)) return std::nullopt;
      continue;
    }
    const auto [coefficient, symbol] = split_coefficient(term);
    if (symbol.kind() != SymKind::Symbol || !out.symbol.empty()) return std::nullopt;
    out.symbol = symbol.name();
    factor = coefficient;
  }
  if (factor == 0 || (factor == -1 && rest == INT64_MIN)) return std::nullopt;
  if (rest % factor == 0) out.value = rest / factor;
  return out;
}

}  // namespace partita
