#pragma once
// PyTorch's debugging compilers (torch._functorch.compilers), by name.
#include <functional>
#include <span>
#include <string>
#include <string_view>

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

}  // namespace partita
