#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/call.h"
#include "core/tensor/value.h"

namespace partita {

/// float64 for floating dtypes, complex128 for complex ones, itself otherwise.
DType widened(DType t);
/// Tensors of narrower floating or complex dtypes as copies in the widened one; lists item by item.
Result<Value> widened(Value v);
/// The arguments of a call in double precision: softmax and log_softmax have no half type to make a float of.
void clear_half_to_float(const Node& node, std::vector<Value>& args,
                         std::vector<std::pair<std::string, Value>>& kwargs);
/// What draws random numbers, in a run in double precision: other dtypes would draw others, so the tensors among `args`
/// are brought back to the dtypes that the node's arguments have, and what comes out or is written is widened.
Result<Value> draw_as_written(const Node& node, std::vector<Value> args,
                              std::vector<std::pair<std::string, Value>> kwargs, const EvalContext& context);

}  // namespace partita
