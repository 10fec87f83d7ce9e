#pragma once
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/call.h"
#include "core/tensor/value.h"

namespace partita {

/// Is it an operator that runs sub graphs (cond, while_loop, map_impl, scan, wrappers around one graph), or
/// with_effects, which calls an operator in the order of effect tokens?
bool is_control(const Op* op);

struct ControlCall {
  const Node& node;
  EvalContext context;
  std::function<Result<Value>(const Arg&)> value_of;
  std::function<Result<std::vector<Value>>(const Graph&, std::vector<Value>)> run;
};
/// Runs the operator and returns the tuple of its results. Precondition: is_control(call.node.op()).
Result<Value> run_control(const ControlCall& call);

}  // namespace partita
