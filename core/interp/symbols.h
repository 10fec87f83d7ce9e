#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// The values of symbols found so far in a run.
class SymbolMap {
 public:
  /// Sets the symbol of e, a sum a*s + b, if it has no value; false when none fits. Else returns whether e has this
  /// value; another expression with unknown symbols agrees with every value.
  bool bind(SymExpr e, std::int64_t value);
  bool bind(SymExpr e, double value);  ///< the same of a symbol for a float, of which value() knows the bits
  std::optional<std::int64_t> value(SymExpr e) const;
  const std::map<std::string, std::int64_t>& all() const { return values_; }
  std::string str() const;  ///< "{s75: 5, s96: 7}"

 private:
  std::map<std::string, std::int64_t> values_;
};

/// Binds the symbols in the placeholders' sizes, strides, offsets and numbers to the inputs, as torch's bind_symbols
/// does. Error interp.symbols when a symbol gets two values.
Result<SymbolMap> bind_symbols(const Graph& graph, const std::vector<Value>& inputs);

/// bind_symbols() of one graph, prepared for calls that come again and again: what it costs is a comparison for each
/// size that depends on a symbol. Not thread-safe.
class SymbolBinder {
 public:
  explicit SymbolBinder(const Graph& graph);
  /// The symbols that inputs may give, sorted.
  const std::vector<std::string>& names() const { return names_; }
  /// A value for each of names(), valid until the next call; `unbound` where no input gives it. Errors as
  /// bind_symbols().
  Result<std::span<const std::int64_t>> bind(const std::vector<Value>& inputs);
  /// The same by name.
  std::map<std::string, std::int64_t> named(std::span<const std::int64_t> values) const;

  static constexpr std::int64_t unbound = INT64_MIN;

 private:
  enum class Part : unsigned char { Number, Size, Stride };
  struct Source {
    std::size_t input;
    Part part;
    std::size_t dim;
    std::size_t index;  ///< of a symbol among names_, or of an expression among expressions_
  };
  struct Expression {
    SymExpr e;
    std::optional<std::int64_t> expected;  ///< for values_; nullopt: agrees with every value
  };
  static std::optional<std::int64_t> found(const Source& source, const Value& value);
  void expect();

  const Graph& graph_;
  std::vector<std::string> names_;
  std::vector<Source> symbols_, others_;
  std::vector<Expression> expressions_;
  std::vector<std::int64_t> values_, next_;
};

/// Compares the number, dtypes and sizes of the inputs with the placeholders' metas. What the graph does not read may
/// be None. `float64`: inputs may have been widened before, as a forward in double gives them to its backward. Error
/// interp.inputs names the input.
Status check_inputs(const Graph& graph, const std::vector<Value>& inputs, bool float64 = false);

}  // namespace partita
