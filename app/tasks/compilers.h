#pragma once
// PyTorch's debugging compilers (torch._functorch.compilers), by name.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/tasks/run_artefact.h"
#include "codegen/backends.h"
#include "core/aot/run_program.h"

namespace partita {

struct CompilerSetup {
  BackendOptions backend;
  std::string name = "graph";  ///< of the drawing or the dump
  std::string folder = ".";    ///< where they go
  bool dump_example_inputs = false;
  std::function<void(std::string_view)> print;  ///< gets what the compiler prints
  /// Draws a graph that is too large for Graphviz as "svg", "png" or "pdf"; null: such a graph is refused.
  Result<std::string> (*draw_large)(const Graph& graph, const std::string& format) = nullptr;
};

/// One row each; `run --compiler` and the window's compiler box take the name.
struct Compiler {
  std::string_view name;
  std::string_view description;
  bool writes_files;  ///< into CompilerSetup::folder
  /// Fills in what compiles the forward and the backward, and how the joint graph is made and cut; where a compiler
  /// says nothing, as aot_function does.
  void (*set_up)(const CompilerSetup& setup, RunOptions& options);
};
std::span<const Compiler> compilers();
/// Error compiler.unknown lists the names.
Result<const Compiler*> find_compiler(std::string_view name);

/// The OUT file of one run with this compiler. A partitioner that the configuration was given is
/// used, else the compiler's own. The backend's configuration is this thread's; its generator,
/// worker and whether parameters are fixed follow from the request.
Result<TensorFile> run_with_compiler(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                     const Compiler& compiler, CompilerSetup setup);

/// What the window's Run page asks.
struct CompilerRequest {
  std::string compiler;
  bool train = false;  ///< with backward and gradients
  std::string inputs;  ///< path of an IO file; empty: the archive's samples, else made up
  std::string folder;  ///< for what the compiler writes; empty: the current one
};
/// A run, and what is known of it beside its results.
struct CompilerRun {
  TensorFile results;
  Report against_file;  ///< the results compared with those in the IO file; no rows: it has none
  std::string printed;  ///< what the compiler printed
  double seconds = 0;
  std::vector<std::pair<std::string, double>> stages;  ///< milliseconds of each stage of compiling; empty: not known
};
/// Runs as `partita run --compiler` does, compiled code in `worker`, and keeps what is printed. `draw_large`: as in
/// CompilerSetup.
Result<CompilerRun> run_compiler(const Artefact& artefact, const CompilerRequest& asked, const WorkerOptions& worker,
                                 Result<std::string> (*draw_large)(const Graph& graph, const std::string& format),
                                 const Progress& progress);

}  // namespace partita
