#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/size_compilation.h"
#include "core/aot/aot.h"
#include "core/aot/staged_compiler.h"
#include "core/base/config.h"
#include "core/base/progress.h"
#include "core/base/stage_times.h"
#include "core/tensor/device.h"
#include "core/tensor/generator.h"
#include "core/tensor/value.h"

namespace partita {

class CodeStore;
class Communicator;
namespace codegen {
class Machine;
}
struct GraphCache;

/// Another process in which a compiler makes its code and runs it, so that a crash or hang is an error (is_death() in
/// core/base/whereabouts.h) and cancelling takes effect at once. Interpreters stay in this process.
struct WorkerOptions {
  std::string program = "/proc/self/exe";           ///< has the verb `worker`
  std::string plant;                                ///< a fault to be found, as `--plant` takes it; empty: none
  std::function<void(const Graph&)> on_graph = {};  ///< told of each graph before it is compiled; may be empty
};

struct BackendOptions {
  /// Code that is made later, for new sizes, is made with it, too.
  Config config = partita::config();
  const Progress* progress = nullptr;
  /// Parameters and buffers keep their values between runs (inference), so a compiler may pack them.
  bool fixed_parameters = false;
  /// The generator of random operators in all graphs made with these options; null: each run makes a new one with the
  /// default seed.
  std::shared_ptr<Generator> generator;
  /// The other ranks of the job that the graphs are a part of; null: collectives are refused.
  std::shared_ptr<Communicator> communicator = {};
  /// The store of compiled code; null: none.
  std::shared_ptr<CodeStore> store;
  /// Hears of each compilation for new sizes; may be empty. Those of a worker are told by its starter.
  std::function<void(const SizeCompilation&)> on_sizes;
  /// Gets what post-grad passes, planning, LLVM, linking and preparing library calls take; null: nobody asks. Unused by
  /// compilations in another process.
  std::shared_ptr<StageTimes> times;
  /// Where a compiler's code runs; null: the backend's own, which is opened when the first graph is compiled.
  std::shared_ptr<const codegen::Machine> machine;
  std::optional<WorkerOptions> worker;  ///< unset: compiled code runs in this process
  /// Of the interpreter in double: gives values that rounding might give, other ones for other seeds
  /// (interpret_shifted); unset: exact ones.
  std::optional<unsigned> shift = {};
  bool inference = true;  ///< the graphs are not parts of a training step: what PyTorch is told
};

/// One way to run graphs. `--backend` takes the name.
struct Backend {
  std::string_view name;
  std::string_view description;
  /// Runs graphs as they are, this backend's; null: it is a compiler.
  CompileFn (*interpreter)(const Backend& backend, const BackendOptions& options);
  /// What a compiler makes code for; null: it is an interpreter.
  std::shared_ptr<const codegen::Machine> (*machine)() = nullptr;
  DeviceType kernels = DeviceType::Cpu;  ///< whose kernels it runs
  /// Puts values where its code has them, for the runs of a session; null: they stay in the host's memory.
  Status (*place)(std::vector<Value>& values) = nullptr;

  CompileFn make(const BackendOptions& options) const;
  /// Starts the process in which it runs graphs, if it has one, for callers who fork before they run any. Error
  /// torch.start.
  Status start(const BackendOptions& options) const;
  /// Runs mutating and torch-level graphs as they are; other backends need functional ATen.
  bool takes_any_graph() const { return interpreter; }
  /// A compiler in stages, for callers that show its kernels or look for the stage to blame.
  StagedCompiler stages(const BackendOptions& options) const;
  /// Its cache of whole graphs; null: it has none.
  std::shared_ptr<const GraphCache> cache(const BackendOptions& options) const;
};
/// Those with a name of their own; names with options, and PyTorch's other backends, are found, too.
std::span<const Backend> backends();
/// Asks for the graphs that the backend runs best.
void adapt_options(const Backend& backend, AotOptions& options);
/// Finds a backend by name, also torch:NAME (codegen/torch/column.h). Error backend.unknown lists the names.
Result<const Backend*> find_backend(std::string_view name);
/// The compiler for this machine, used when no backend is named.
const Backend& default_compiler();

}  // namespace partita
