#pragma once
#include <optional>

#include "core/ops/record/record.h"

namespace partita {

/// An in-place (add_) or out (add.out) overload as its functional variant plus a copy, derived from the schema's alias
/// marks.
struct FunctionalVariant {
  const Op* op = nullptr;
  const Schema* schema = nullptr;
  std::vector<int> from;     ///< for each argument of the functional variant, its position in the mutating schema
  std::vector<int> written;  ///< positions of the arguments written, in the order of the functional variant's results
};

/// Error when a result cannot be copied into the argument that an in-place or out overload writes: its size must be
/// equal (PyTorch resizes out arguments and addbmm_'s self, and refuses most others), and its kind of dtype no wider.
Status check_fits(const Schema& mutating, DType to, const SymList& to_sizes, DType from, const SymList& from_sizes);
/// Nullopt when op writes nothing or the table has no functional variant of it.
std::optional<FunctionalVariant> functional_variant(const Op* op);
/// Calls an operator with arguments in the order of its schema.
Node* call_in_order(Builder& build, const Schema& schema, const Args& bound);
/// The call's functional variant, without the copy. Raises ops.arguments.
Node* call_functional(Builder& build, const FunctionalVariant& variant, const Node& call);
Result<Meta> infer_variant(const FunctionalVariant& variant, const Schema& schema, const Args& bound, ShapeEnv& shapes,
                           const Node* node);
Result<Value> evaluate_variant(const FunctionalVariant& variant, const Schema& schema, std::vector<Value> bound,
                               const EvalContext& context, const Node* node);

}  // namespace partita
