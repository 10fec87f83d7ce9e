#pragma once
// Internal to core/sym: the node behind a symbolic expression, and the only place that makes nodes.
#include <bit>

#include "core/sym/sym_expr.h"

namespace partita {

struct SymNode {
  SymKind kind;
  double real = 0;
  std::string name;
  std::vector<SymExpr> args;
  int id = 0;  ///< of a Computed
  std::size_t hash = 0;
  std::size_t terms = 1;  ///< leaves of the tree that it prints as, at most SIZE_MAX
  int depth = 1;
  bool is_float = false;

  bool same(const SymNode& o) const {
    return kind == o.kind && std::bit_cast<std::uint64_t>(real) == std::bit_cast<std::uint64_t>(o.real) &&
           name == o.name && args == o.args && id == o.id;
  }
};

/// Makes all SymNodes and interns them for the life of the process.
struct SymBuilder {
  /// Makes a node of exactly these arguments. The caller brings them to canonical form (sym_arith.cpp). Raises an
  /// error for what is too deep for functions that call themselves, or beyond the TermBudget.
  static SymExpr make(SymKind kind, std::vector<SymExpr> args, std::string name = {}, double real = 0, int id = 0);

 private:
  static SymExpr wrap(const SymNode* node);
};

/// The canonical sum of terms.
SymExpr sym_sum(std::span<const SymExpr> terms);
/// Splits a term into its integer coefficient and the remaining factors.
std::pair<std::int64_t, SymExpr> split_coefficient(SymExpr e);

/// The arguments in the order in which sympy prints them: the terms of a sum or the factors of a product.
std::vector<SymExpr> sym_print_order(SymExpr e);

}  // namespace partita
