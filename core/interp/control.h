#pragma once
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/call.h"
#include "core/tensor/value.h"

namespace partita {

/// Operators that run sub graphs: cond, while_loop, map_impl, scan and the wrappers that only call one; and
/// with_effects, which calls an operator in the order of effect tokens.
bool is_control(const Op* op);

struct ControlCall {
  const Node& node;
  EvalContext context;
  std::function<Result<Value>(const Arg&)> value_of;
  std::function<Result<std::vector<Value>>(const Graph&, std::vector<Value>)> run;
};
/// Precondition: is_control(call.node.op()). The tuple of results.
Result<Value> run_control(const ControlCall& call);

}  // namespace partita
