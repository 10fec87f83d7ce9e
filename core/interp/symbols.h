#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// The values of symbols found so far in a run.
class SymbolMap {
 public:
  /// If e is a symbol without a value (or minus one), sets its value. Else returns whether e has this value; an
  /// expression with unknown symbols agrees with every value.
  bool bind(SymExpr e, std::int64_t value);
  std::optional<std::int64_t> value(SymExpr e) const;
  const std::map<std::string, std::int64_t>& all() const { return values_; }
  std::string str() const;  ///< "{s75: 5, s96: 7}"

 private:
  std::map<std::string, std::int64_t> values_;
};

/// Binds the symbols in the placeholders' sizes, strides, offsets and numbers to the inputs, as torch's bind_symbols
/// does. Error interp.symbols when a symbol gets two values.
Result<SymbolMap> bind_symbols(const Graph& graph, const std::vector<Value>& inputs);

/// Compares the number, dtypes and sizes of the inputs with the placeholders' metas. What the graph does not read may be
/// None. Error interp.inputs names the
/// input.
Status check_inputs(const Graph& graph, const std::vector<Value>& inputs);

}  // namespace partita
