#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/record/call.h"
#include "core/tensor/value.h"

namespace partita {

/// float64 for floating dtypes, complex128 for complex ones, itself otherwise.
DType widened(DType t);
/// Copies tensors of narrower floating or complex dtypes to the widened dtype; lists item by item.
Result<Value> widened(Value v);
/// Clears the half_to_float arguments of softmax and log_softmax: in double precision there is no half type to convert.
void clear_half_to_float(const Node& node, std::vector<Value>& args,
                         std::vector<std::pair<std::string, Value>>& kwargs);
/// Does a double-precision run compute the operator in the dtypes of the graph? It draws random numbers, which are
/// others for other dtypes, or its record says so.
bool is_run_as_written(const Op* op);

/// Runs such an operator: its tensor arguments are converted to the dtypes of the graph, and its results and written
/// arguments are widened.
Result<Value> run_as_written(const Node& node, std::vector<Value> args,
                             std::vector<std::pair<std::string, Value>> kwargs, const EvalContext& context);

}  // namespace partita
