#pragma once
#include <functional>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/call.h"
#include "core/tensor/value.h"

namespace partita {

using ValueKwargs = std::vector<std::pair<std::string, Value>>;

struct InterpOptions {
  int threads = 1;
  /// What random operators draw from; null: a new one for each run, with the default seed.
  std::shared_ptr<Generator> generator = {};
  /// Compute in double: floating inputs, attributes and dtype arguments are widened. Inputs are then copies, so
  /// mutations do not reach the caller. The baseline that tells rounding from error.
  bool float64 = false;
  /// Refuse inputs whose dtype or sizes differ from the placeholders' metas.
  bool check_inputs = true;
  const Progress* progress = nullptr;
  /// Sees each node's value as soon as it is computed; a failure stops the run.
  std::function<Status(const Node&, const Value&)> observer = {};
  /// Stands in for ops/record.h's evaluate: where tests plant a wrong kernel.
  std::function<Result<Value>(const Node&, std::vector<Value>, ValueKwargs, const EvalContext&)> evaluate = {};
};

/// Runs the graph node by node; the meaning all backends are held against. Values are freed after their last use.
/// In-place operators write through to the storages of `inputs`. A graph of torch-level calls (dynamo) is resolved to
/// ATen first. Returns what forward returns, flattened. Errors name the node and its source line; Fault::Cancelled
/// when progress says stop.
Result<std::vector<Value>> interpret(const Graph& graph, std::vector<Value> inputs, const InterpOptions& options = {});

}  // namespace partita
