#pragma once
// Inside of core/sym: what a symbolic expression points to, and its maker.
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
  bool is_float = false;

  bool same(const SymNode& o) const {
    return kind == o.kind && std::bit_cast<std::uint64_t>(real) == std::bit_cast<std::uint64_t>(o.real) &&
           name == o.name && args == o.args && id == o.id;
  }
};

/// The only maker of SymNodes: interns them for the life of the process.
struct SymBuilder {
  /// A node as it is given: canonical form is the caller's work (sym_arith.cpp).
  static SymExpr make(SymKind kind, std::vector<SymExpr> args, std::string name = {}, double real = 0, int id = 0);

 private:
  static SymExpr wrap(const SymNode* node);
};

/// The canonical sum of terms.
SymExpr sym_sum(std::span<const SymExpr> terms);
/// The coefficient of a term and the rest, which carries no integer factor.
std::pair<std::int64_t, SymExpr> split_coefficient(SymExpr e);

/// The arguments of an expression as sympy prints them: terms of a sum and factors of a product in its order.
std::vector<SymExpr> sym_print_order(SymExpr e);

}  // namespace partita
