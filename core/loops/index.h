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
/// Splitting a variable into digits (x // 4, x % 4) and joining them again gives x. Divisors are concrete and positive.
class IndexMath {
 public:
  /// A variable with values 0 .. extent-1. Declaring a name again changes its extent.
  SymExpr variable(const std::string& name, std::int64_t extent);
  /// A variable for each dimension: PREFIX0, PREFIX1, ...; 0 for dimensions of size 1.
  Index variables(const std::string& prefix, const Sizes& sizes);
  /// A computed scalar that lies within 0 .. extent-1.
  SymExpr computed(int scalar, std::int64_t extent);

  /// The smallest and largest value that e can take.
  std::pair<std::int64_t, std::int64_t> bounds(SymExpr e) const;
  SymExpr floordiv(SymExpr a, std::int64_t c) const;
  SymExpr mod(SymExpr a, std::int64_t c) const;
  /// Joins the digits of one number: 4 * (x // 4) + x % 4 = x.
  SymExpr simplify(SymExpr e) const;

  /// The row-major position of an index in `sizes`, and the inverse.
  SymExpr linear(const Index& index, const Sizes& sizes) const;
  Index delinearize(SymExpr linear, const Sizes& sizes) const;
  /// sum of index[i] * strides[i]
  SymExpr element(const Index& index, const Sizes& strides) const;

  /// The factor of `variable` if e = factor * variable + (terms without it); nullopt otherwise.
  std::optional<std::int64_t> factor(SymExpr e, SymExpr variable) const;

 private:
  std::unordered_map<SymExpr, std::int64_t> extents_;
};

bool contains(SymExpr e, SymExpr variable);

}  // namespace partita::loops
