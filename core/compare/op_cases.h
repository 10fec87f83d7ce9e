#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

enum class Outcome : unsigned char { Passed, Failed, Skipped };

/// One graph of an operator case of a corpus folder, held against what PyTorch computed.
struct CaseResult {
  std::string file;  ///< "add.default"
  std::string kind;  ///< which graph of the case: "graph", "pre_dispatch_graph" or "symbolic_graph"
  std::int64_t index = 0;
  Outcome outcome = Outcome::Passed;
  bool by_double = false;   ///< passed, some numbers by the run in double alone
  std::string message;      ///< what differs, or why it was skipped
  std::string unsupported;  ///< of a skipped case, what was refused: an operator's name or the reason
};

/// Runs a graph on inputs that it may write to.
using RunGraph = std::function<Result<std::vector<Value>>(const Graph& graph, std::vector<Value> inputs)>;

struct CaseOptions {
  RunGraph run;          ///< unset: the debug interpreter, which also holds every node against its annotation
  bool train = false;    ///< differentiate too and hold the gradients against the recorded ones
  std::size_t skip = 0;  ///< graphs of the file to pass over, in its order
  std::function<void(const CaseResult&)> starting;  ///< sees file, kind and index of a graph before it is run
  std::function<void(const CaseResult&)> finished;  ///< sees each result at once
};

/// The case files (NAME.json beside NAME.safetensors) of a folder, or the one file. Error compare.cases when there are
/// none.
Result<std::vector<std::string>> find_case_files(const std::string& path);
/// Every graph of every case of one file, in order; a case has a `graph` and may have the two others. The graph and the
/// pre-dispatch graph are run and held against dtype, sizes, significant strides, values and aliases of the outputs,
/// values of written inputs, and every node's inferred meta against its annotation. Values outside the case's tolerance
/// are right if judge_by_baseline() says so and rounding explains PyTorch's own distance from the run in double
/// (rounding.h). Without the second condition a wrong operator would pass, since our run in double computes it as
/// wrongly. Of the symbolic graph, which has no values, the annotations are held against fake propagation under the case's example values.
Result<std::vector<CaseResult>> check_cases(const std::string& json_path, const CaseOptions& options = {});

}  // namespace partita
