#pragma once
#include "core/ops/record/record.h"

namespace partita {

/// A literal argument as a value. CHECKs that it contains no node.
Value to_value(const Arg& literal);
/// bind_arguments() for values.
Result<std::vector<Value>> bind_values(const Schema& schema, std::vector<Value> args,
                                       std::vector<std::pair<std::string, Value>> kwargs);
/// Evaluates a composite: decomposes it for the values' metas and evaluates the resulting calls.
Result<Value> evaluate_by_decomposition(const OpRecord& record, std::vector<Value> bound, const EvalContext& context,
                                        const Node* node);

}  // namespace partita
