#pragma once
#include "core/ops/record/record.h"

namespace partita {

/// A literal argument as a value. CHECKs that it contains no node.
Value to_value(const Arg& literal);
/// bind_arguments() for values.
Result<std::vector<Value>> bind_values(const Schema& schema, std::vector<Value> args,
                                       std::vector<std::pair<std::string, Value>> kwargs);
/// Evaluates a call by a decomposition of it: decomposes it for the values' metas and evaluates the resulting calls.
Result<Value> evaluate_by_decomposition(const Schema& schema, Arg (*decompose)(DecomposeCall&),
                                        std::vector<Value> bound, const EvalContext& context, const Node* node);
/// What an evaluation or a decomposition computes, as the fake promises it: in its dtype, sizes and strides. It may be
/// in any dtype, and row-major elements in other sizes. Sizes that only values decide stay; a tensor without storage is
/// None.
Value as_promised(Value value, const Meta& promised);

// What OpTable::add() gives a record that has no evaluation, pointwise body or decomposition: its `lower`, or its
// compile_decompose, says what the operator computes.
Value eval_by_loops(EvalCall& call);
Value eval_by_compile_decomposition(EvalCall& call);

}  // namespace partita
