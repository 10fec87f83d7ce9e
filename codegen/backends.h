#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "core/aot/staged_compiler.h"
#include "core/base/progress.h"
#include "core/tensor/generator.h"

namespace partita {

class CodeStore;

struct BackendOptions {
  int threads = 1;
  const Progress* progress = nullptr;
  /// Parameters and buffers keep their values between runs, so that a compiler may pack them: an inference.
  bool fixed_parameters = false;
  /// What random operators draw from, in all graphs made with these options; null: each run of a graph draws anew from
  /// one with the default seed.
  std::shared_ptr<Generator> generator;
  /// Where compiled code is found again; null: nowhere.
  std::shared_ptr<CodeStore> store;
};

/// What runs graphs. One row each; `--backend` takes the name.
struct Backend {
  std::string_view name;
  std::string_view description;
  CompileFn (*make)(const BackendOptions& options);
  bool takes_any_graph;  ///< runs mutating and torch-level graphs as they stand; others want functional ATen
  /// The same in stages, for callers that show its kernels or look for the stage to blame; null: it has none.
  StagedCompiler (*stages)(const BackendOptions& options) = nullptr;
};
std::span<const Backend> backends();
/// Error backend.unknown lists the names.
Result<const Backend*> find_backend(std::string_view name);
/// The compiler for this machine: what is meant where no backend is named. It has stages.
const Backend& default_compiler();

}  // namespace partita
