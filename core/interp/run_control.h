#pragma once
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/record/call.h"
#include "core/tensor/value.h"

namespace partita {

struct ControlCall {
  const Node& node;
  EvalContext context;
  std::function<Result<Value>(const Arg&)> value_of;
  std::function<Result<std::vector<Value>>(const Graph&, std::vector<Value>)> run;
};
/// Runs the operator and returns the tuple of its results. Precondition: find_control(call.node.op()).
Result<Value> run_control(const ControlCall& call);

}  // namespace partita
