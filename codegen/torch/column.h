#pragma once
// PyTorch's own ways of running graphs, as backends: torch:eager, torch:inductor, torch:NAME.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/aot/run_compiled.h"
#include "core/base/config.h"
#include "core/base/descriptor.h"
#include "core/base/progress.h"
#include "core/base/stage_times.h"
#include "core/tensor/generator.h"

namespace partita {
class Communicator;
}

namespace partita::torch {

/// Is it the name of such a backend, "torch:..."?
bool is_column(std::string_view name);

/// Checks the form of a name: torch:NAME[@DEVICE], where NAME is eager, aot_eager, inductor[+KEY=VALUE...], a backend
/// that is registered with torch.compile, or FILE.py:FUNCTION. Whether PyTorch has it shows when it is used. Error
/// backend.unknown.
Status check_column(std::string_view name);

/// The parts of torch:NAME@DEVICE+KEY=VALUE.
struct ColumnName {
  std::string name, device;
  std::map<std::string, std::string> options;
};
/// Error backend.unknown.
Result<ColumnName> parse_column(std::string_view whole);

struct ColumnOptions {
  Config config;                         ///< which Python, and its limits
  const Progress* progress = nullptr;    ///< null: nobody watches
  std::shared_ptr<Generator> generator;  ///< the random numbers of the run; null: PyTorch's own seed
  bool inference = true;                 ///< inductor's is_inference
  /// The other ranks of the job: a graph with collectives runs in a process group, gloo's or FakeProcessGroup; null:
  /// such a graph is refused by PyTorch.
  std::shared_ptr<Communicator> communicator = {};
  /// Gets how long Python built, traced, compiled and ran a graph; null: nobody asks.
  std::shared_ptr<StageTimes> times = {};
};

/// Runs graphs in the user's Python, each run in a child process: a run compiles, too, for which inductor has a cache.
/// Errors of a run: torch.start, torch.refused (Fault::Unsupported), torch.exception.CLASS with the node where PyTorch
/// tells it, process.died.
CompileFn column(std::string_view name, const ColumnOptions& options);

/// Finds which kernel and node of torch:inductor[+KEY=VALUE...] is wrong on these inputs, by one compilation and a run
/// in which each kernel is judged on right inputs. The report is that of codegen/torch/worker/locating/report.py.
/// Errors: backend.unknown for another column; those of a run.
/// `switches`: also which of inductor's settings make a fault go away, a compilation each.
Result<nlohmann::json> locate(std::string_view name, const Graph& graph, const std::vector<Value>& inputs,
                              const ColumnOptions& options, bool switches = false);

/// A graph and what it is searched with.
struct ProgramQuestion {
  /// A graph of the same compilation, from a log: what it is there, its id, and the backward that goes with it.
  struct LogGraph {
    std::string role, id, backward_id;
    const Graph* graph = nullptr;
    const Graph* backward = nullptr;  ///< may be null
  };
  std::string name;  ///< of the graph, for messages
  const Graph* graph = nullptr;
  std::vector<Value> inputs;
  std::vector<bool> requires_grad;  ///< by input
  std::vector<Value> tangents;      ///< by output of the graph, None where none is given; empty: made up
  std::string kind;                 ///< "program", or "forward", "backward", "inference" for what inductor gets
  std::vector<LogGraph> log;
};

/// As locate(), for a graph of dynamo's, from which PyTorch makes those of inductor, or for one that inductor gets:
/// first says which of PyTorch's stages is wrong. Reports on the stages and on each graph, {"graph": "stages", ...}.
/// With `inference` of the options nothing is differentiated.
Result<std::vector<nlohmann::json>> locate_program(std::string_view name, const ProgramQuestion& question,
                                                   const ColumnOptions& options, bool switches);

/// Calls an operator in the user's Python, on these values, as InterpOptions::call_unknown has them. What it writes to
/// arguments is in them afterwards. Errors as of a run.
Result<Value> call_operator(const Node& call, const std::vector<Value>& args,
                            const std::vector<std::pair<std::string, Value>>& kwargs, const ColumnOptions& options);

/// Starts the Python process, or another one when it has ended, for callers who fork before they run graphs. Error
/// torch.start.
Status start(const Config& config, const Progress* progress);

/// A descriptor of the Python process, for a program that this process starts and that calls use_process(). Error
/// torch.start.
Result<Descriptor> share_process(const Config& config, const Progress* progress);
/// Lets columns of this configuration run in the Python process that another process started. Error torch.start when
/// `descriptor` is not of share_process().
Status use_process(const Config& config, int descriptor);

}  // namespace partita::torch
