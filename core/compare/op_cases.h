#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/compare/compare.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

enum class Outcome : unsigned char { Passed, Failed, Skipped };

/// The result of one graph of an operator case, compared with what PyTorch computed.
struct CaseResult {
  std::string file;  ///< "add.default"
  std::string kind;  ///< which graph of the case: "graph", "pre_dispatch_graph" or "symbolic_graph"; "aot"
  std::int64_t index = 0;
  Outcome outcome = Outcome::Passed;
  bool by_double = false;          ///< passed, but some numbers only by the run in double
  std::string message;             ///< what differs, or why it was skipped
  std::string unsupported;         ///< what was refused, if the case was skipped: an operator's name or the reason
  void set(const Status& status);  ///< the outcome, with what the status says
};

/// Runs a graph on inputs that it may write to.
using RunGraph = std::function<Result<std::vector<Value>>(const Graph& graph, std::vector<Value> inputs)>;

struct CaseOptions {
  RunGraph run;           ///< unset: the debug interpreter, which also checks every node against its annotation
  bool train = false;     ///< also differentiate, and compare the gradients with the recorded ones
  std::size_t every = 1;  ///< only the first of so many cases is run, then the first of the next so many ...
  std::size_t skip = 0;   ///< number of graphs that are not run at the start of the file; those of cases left out by
                          ///< `every` do not count
  std::function<void(const CaseResult&)> starting;  ///< called with file, kind and index before a graph is run
  std::function<void(const CaseResult&)> finished;  ///< called with each result at once
};

/// "output.0: 2 of 6 elements differ, first at [1]: 3 expected, 4 found", or how the layouts differ.
std::string first_wrong(const Difference& d);
Diagnostic differs(std::string message);  ///< error compare.differs
/// What a refusal refuses: "no record for operator aten.x.y; ..." -> "aten.x.y", else the whole message.
std::string refused(const Diagnostic& d);

/// Finds the case files of a folder (NAME.json beside NAME.safetensors, or NAME/case.json beside NAME/dynamo.py), or
/// the one file. Error compare.cases when there are none.
Result<std::vector<std::string>> find_case_files(const std::string& path);
/// Checks every graph of every case of a file, in order. A case has a `graph`, and may have a pre-dispatch and a
/// symbolic graph. The graph and the pre-dispatch graph are run; dtypes, sizes, significant strides, values and aliases
/// of the outputs and the values of written inputs are compared, and every node's inferred meta with its annotation.
/// The symbolic graph has no values: its annotations are compared with fake propagation under the case's example
/// values.
Result<std::vector<CaseResult>> check_cases(const std::string& json_path, const CaseOptions& options = {});

}  // namespace partita
