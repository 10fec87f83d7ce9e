#pragma once
#include <functional>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/ops/record/call.h"
#include "core/tensor/value.h"

namespace partita {

using ValueKwargs = std::vector<std::pair<std::string, Value>>;

struct InterpOptions {
  int threads = 1;
  /// The generator of random operators; null: each run makes a new one with the default seed.
  std::shared_ptr<Generator> generator = {};
  /// Compute in double: floating inputs, attributes and dtype arguments are widened. The inputs are copied, so
  /// mutations do not reach the caller. This run is the baseline that separates rounding from errors.
  bool float64 = false;
  bool writes_back = false;  ///< of a run in double: what it writes to its copies is rounded into the inputs
  /// Refuse inputs whose dtype or sizes differ from the placeholders' metas.
  bool check_inputs = true;
  const Progress* progress = nullptr;
  Communicator* communicator = nullptr;  ///< the other ranks of the job; null: collectives are refused
  /// Called with each node's value as soon as it is computed. Its failure stops the run.
  std::function<Status(const Node&, const Value&)> observer = {};
  /// Replaces ops/record.h's evaluate, so that tests can plant a wrong kernel.
  std::function<Result<Value>(const Node&, std::vector<Value>, ValueKwargs, const EvalContext&)> evaluate = {};
  /// What a run in double takes for the value of a placeholder, which is widened already; empty: the value.
  std::function<Value(const Node& placeholder, Value)> input = {};
  /// Calls operators of which nothing is known here: neither record nor schema; empty: these are refused. A kernel of
  /// the user's own (is_kernel) gets the values of node.inputs(), and gives those of written_by_kernel() where it has a
  /// functional form; else it writes to what it got.
  std::function<Result<Value>(const Node&, const std::vector<Value>&, const ValueKwargs&)> call_unknown = {};
  /// Runs the sub graphs of cond, while_loop, map_impl and scan; empty: they are interpreted too.
  std::function<Result<std::vector<Value>>(const Graph& sub_graph, std::vector<Value> operands)> run_sub_graph = {};
};

/// Runs the graph node by node. This defines the results that all backends must give. Values are freed after their last
/// use. In-place operators write to the storages of `inputs`. Torch-level calls (dynamo) are resolved to ATen first.
/// Returns forward's results, flattened. Errors name the node and its source line; Fault::Cancelled when `progress`
/// says stop.
Result<std::vector<Value>> interpret(const Graph& graph, std::vector<Value> inputs, const InterpOptions& options = {});

}  // namespace partita
