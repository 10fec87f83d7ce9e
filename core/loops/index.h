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

/// One expression for each dimension of a tensor.
using Index = std::vector<SymExpr>;

/// Arithmetic on index expressions with the ranges of their variables: what sympy with ranges is to Inductor. Splitting
/// a variable into digits (x // 4, x % 4) and joining them again gives x. Divisors are concrete and positive.
class IndexMath {
 public:
  /// A variable that runs over 0 .. extent-1. Declaring a name again changes its extent.
  SymExpr variable(const std::string& name, std::int64_t extent);
  /// A computed scalar that lies within 0 .. extent-1.
  SymExpr computed(int scalar, std::int64_t extent);

  /// Smallest and largest value that e can take.
  std::pair<std::int64_t, std::int64_t> bounds(SymExpr e) const;
  SymExpr floordiv(SymExpr a, std::int64_t c) const;
  SymExpr mod(SymExpr a, std::int64_t c) const;
  /// Digits of one number joined: 4 * (x // 4) + x % 4 = x.
  SymExpr simplify(SymExpr e) const;

  /// Row-major position of an index in `sizes`, and back.
  SymExpr linear(const Index& index, const Sizes& sizes) const;
  Index delinearize(SymExpr linear, const Sizes& sizes) const;
  /// sum of index[i] * strides[i]
  SymExpr element(const Index& index, const Sizes& strides) const;

  /// The factor of `variable` in e when e = factor * variable + (terms without it); nullopt otherwise.
  std::optional<std::int64_t> factor(SymExpr e, SymExpr variable) const;

 private:
  std::unordered_map<SymExpr, std::int64_t> extents_;
};

bool contains(SymExpr e, SymExpr variable);

}  // namespace partita::loops
