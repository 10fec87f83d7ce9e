#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace partita {

struct SymNode;

enum class SymKind : std::uint8_t {
  Int,
  Float,
  Symbol,
  Add,
  Mul,
  Pow,  ///< n-ary, sorted; Pow(base, exponent)
  FloorDiv,
  Mod,
  TrueDiv,  ///< Python's //, % and /; TrueDiv gives a float
  Min,
  Max,  ///< n-ary, sorted
  Eq,
  Ne,
  Lt,
  Le,
  And,
  Or,
  Not,
  Call,      ///< any other sympy function, kept by name: CeilToInt, ToFloat, OpaqueUnaryFn_sqrt, ...
  Computed,  ///< a value that only its owner knows, identified by a number: a scalar of a loop's body
};

/// An immutable, hash-consed, canonical symbolic expression: integer, float or boolean. Equal expressions are the same
/// node, so == compares pointers. Integers are stored inline and allocate nothing. Sums and products are flattened and
/// sorted, integer multiples are collected, and products of sums are expanded. Threads may share expressions.
class SymExpr {
 public:
  SymExpr(std::int64_t value = 0) : value_(value) {}
  SymExpr(int value) : value_(value) {}
  /// A symbol, a float, and a value of kind Computed.
  static SymExpr symbol(std::string_view name);
  static SymExpr real(double value);
  static SymExpr computed(int id);
  /// Reads sympy text as annotations and guards print it ("3*s77 + 1", "(s75//5)", "Max(1, u0)", "u0 >= 0"), or srepr
  /// as .pt2 archives store it ("Add(Symbol('s17', integer=True), Integer(2))").
  static Result<SymExpr> parse(std::string_view text);

  /// What it is; is it an integer, is it that integer?
  SymKind kind() const;
  bool is_int() const { return node_ == nullptr; }
  bool is(std::int64_t v) const { return node_ == nullptr && value_ == v; }
  /// Precondition: is_int().
  std::int64_t as_int() const;
  double as_float() const;  ///< precondition: Float
  int computed_id() const;  ///< precondition: Computed
  std::span<const SymExpr> args() const;
  const std::string& name() const;  ///< of a Symbol or a Call
  /// True if the value is not an integer: Float, TrueDiv, negative powers, float symbols (zf*), and sums or products of
  /// these.
  bool is_float() const;
  bool is_boolean() const;

  /// As PyTorch prints it: "3*s77 + 1"; and a hash of the node.
  std::string str() const;
  std::size_t hash() const;
  bool operator==(const SymExpr&) const = default;

  /// The value under an assignment of symbols; nullopt when a symbol is unassigned or a Call is unknown. Booleans are 0
  /// and 1.
  std::optional<double> evaluate(const std::function<std::optional<std::int64_t>(const std::string&)>& symbol) const;
  /// The same of an integer or boolean, exactly; nullopt also when it or a part of it has more than 64 bits.
  std::optional<std::int64_t> evaluate_integer(
      const std::function<std::optional<std::int64_t>(const std::string&)>& symbol) const;
  SymExpr substitute(const std::function<std::optional<SymExpr>(const std::string&)>& symbol) const;
  /// Each part replaced by what `change` makes of it, its own parts first.
  SymExpr rebuilt(const std::function<SymExpr(SymExpr)>& change) const;
  /// The names of its symbols, sorted, without repeats.
  std::vector<std::string> symbols() const;

  friend SymExpr operator+(SymExpr a, SymExpr b);
  friend SymExpr operator-(SymExpr a, SymExpr b);
  friend SymExpr operator*(SymExpr a, SymExpr b);
  friend SymExpr operator-(SymExpr a);

 private:
  friend struct SymBuilder;
  friend struct SymNode;
  const SymNode* node_ = nullptr;  ///< null: the expression is the integer value_
  std::int64_t value_ = 0;         ///< 0 when node_ is set
};

/// Python's operators and functions on symbolic numbers, simplified as sympy does.
SymExpr sym_floordiv(SymExpr a, SymExpr b);  ///< rounds down; raises an error if b is the constant 0
SymExpr sym_mod(SymExpr a, SymExpr b);       ///< has the sign of the divisor, as in Python
SymExpr sym_truediv(SymExpr a, SymExpr b);
SymExpr sym_pow(SymExpr base, SymExpr exponent);
SymExpr sym_min(SymExpr a, SymExpr b);
SymExpr sym_max(SymExpr a, SymExpr b);
SymExpr sym_eq(SymExpr a, SymExpr b);
SymExpr sym_ne(SymExpr a, SymExpr b);
SymExpr sym_lt(SymExpr a, SymExpr b);
SymExpr sym_le(SymExpr a, SymExpr b);
SymExpr sym_and(SymExpr a, SymExpr b);
SymExpr sym_or(SymExpr a, SymExpr b);
SymExpr sym_not(SymExpr a);
SymExpr sym_call(std::string_view function, std::vector<SymExpr> args);

using SymList = std::vector<SymExpr>;
/// 1 for no factors.
SymExpr product(std::span<const SymExpr> factors);
/// Max(1, size) of a tensor's size, as PyTorch simplifies it: where every symbol is a size too, and so at least 1.
SymExpr at_least_one(SymExpr size);
/// Row-major strides for these sizes. A size of 0 counts as 1, as in PyTorch.
SymList contiguous_strides(std::span<const SymExpr> sizes);
/// The list as integers; nullopt when an entry is symbolic.
std::optional<std::vector<std::int64_t>> concrete(std::span<const SymExpr> list);

}  // namespace partita

template <>
struct std::hash<partita::SymExpr> {
  std::size_t operator()(const partita::SymExpr& e) const { return e.hash(); }
};
