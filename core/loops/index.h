#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/sym/sym_expr.h"
#include "core/tensor/tensor.h"

namespace partita::loops {

/// One index expression per dimension of a tensor.
using Index = std::vector<SymExpr>;

/// Arithmetic on index expressions that knows the ranges of their variables, like Inductor's sympy with ranges.
/// Splitting a variable into digits (x // 4, x % 4) and joining them again gives x. Extents, strides and divisors are
/// positive numbers, or expressions of sizes: of symbols that no variable has, which are at least 2.
class IndexMath {
 public:
  /// A variable with values 0 .. extent-1. Declaring a name again changes its extent.
  SymExpr variable(const std::string& name, SymExpr extent);
  /// A variable for each dimension: PREFIX0, PREFIX1, ...; 0 for dimensions of size 1.
  Index variables(const std::string& prefix, const SymList& sizes);
  /// A computed scalar that lies within 0 .. extent-1.
  SymExpr computed(int scalar, SymExpr extent);

  /// Is e at least 0 for all values of its variables and sizes? False also when that is not known.
  bool non_negative(SymExpr e) const;
  /// Is e in 0 .. size-1 for all values of its variables and sizes? False also when that is not known.
  bool within(SymExpr e, SymExpr size) const;
  SymExpr floordiv(SymExpr a, SymExpr c) const;
  SymExpr mod(SymExpr a, SymExpr c) const;
  /// Joins the digits of one number: 4 * (x // 4) + x % 4 = x.
  SymExpr simplify(SymExpr e) const;

  /// The row-major position of an index in `sizes`, and the inverse.
  SymExpr linear(const Index& index, const SymList& sizes) const;
  Index delinearize(SymExpr linear, const SymList& sizes) const;
  /// sum of index[i] * strides[i]
  SymExpr element(const Index& index, const SymList& strides) const;

  /// The factor of `variable` if e = factor * variable + (terms without it); nullopt otherwise.
  std::optional<SymExpr> factor(SymExpr e, SymExpr variable) const;

 private:
  /// What a division by c takes out of a sum: sum = whole * c + rest.
  struct Split {
    SymExpr whole, rest;
  };
  std::pair<std::int64_t, std::int64_t> bounds(SymExpr e) const;
  bool is_size(SymExpr e) const;
  std::optional<SymExpr> extreme(SymExpr e, bool highest) const;
  Split split(SymExpr a, SymExpr c) const;
  std::optional<SymExpr> common_factor(SymExpr rest, SymExpr c) const;
  SymExpr divided(SymExpr a, SymExpr c) const;
  SymExpr remainder(SymExpr a, SymExpr c) const;
  std::optional<SymExpr> joined(SymExpr e) const;

  std::unordered_map<SymExpr, SymExpr> extents_;
  bool symbolic_ = false;  ///< some extent is not a number
};

/// Does it occur in the expression?
bool contains(SymExpr e, SymExpr variable);
/// Is a polynomial of sizes at least 0, if each size is at least 2? False also when that is not known.
bool sizes_non_negative(SymExpr e);
/// q with p = q * c; nullopt where there is none, or where it is not found.
std::optional<SymExpr> exact_quotient(SymExpr p, SymExpr c);

}  // namespace partita::loops
