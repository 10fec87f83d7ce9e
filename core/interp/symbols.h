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

/// Values of symbols met so far in a run.
class SymbolMap {
 public:
  /// Learns `value` for e when e is a symbol (or minus one) not met before. Returns false when e, with what is known,
  /// has another value; unknown symbols agree with everything.
  bool bind(SymExpr e, std::int64_t value);
  std::optional<std::int64_t> value(SymExpr e) const;
  const std::map<std::string, std::int64_t>& all() const { return values_; }
  std::string str() const;  ///< "{s75: 5, s96: 7}"

 private:
  std::map<std::string, std::int64_t> values_;
};

/// Binds the placeholders' sizes, strides, offsets and numbers against the inputs, as torch's bind_symbols. Error
/// interp.symbols when one symbol gets two values.
Result<SymbolMap> bind_symbols(const Graph& graph, const std::vector<Value>& inputs);

/// Count, dtype and sizes of the inputs against the placeholders' metas. Error interp.inputs names the input.
Status check_inputs(const Graph& graph, const std::vector<Value>& inputs);

}  // namespace partita
