#pragma once
#include <optional>

#include "core/ops/record.h"

namespace partita {

/// An in-place (add_) or out (add.out) overload as its functional variant plus a copy, derived from the schema's alias
/// marks.
struct FunctionalVariant {
  const Op* op = nullptr;
  const Schema* schema = nullptr;
  std::vector<int> from;     ///< for each argument of the functional variant, its position in the mutating schema
  std::vector<int> written;  ///< positions of the arguments written, in the order of the functional variant's results
};

/// Nullopt when op writes nothing or the table has no functional variant of it.
std::optional<FunctionalVariant> functional_variant(const Op* op);
Result<Meta> infer_variant(const FunctionalVariant& variant, const Schema& schema, const Args& bound, ShapeEnv& shapes,
                           const Node* node);
Result<Value> evaluate_variant(const FunctionalVariant& variant, const Schema& schema, std::vector<Value> bound,
                               const EvalContext& context, const Node* node);

}  // namespace partita
