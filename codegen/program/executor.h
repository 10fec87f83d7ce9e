#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "codegen/program/executable.h"
#include "codegen/program/extern.h"
#include "codegen/program/kernel_code.h"
#include "codegen/program/kernel_device.h"
#include "codegen/program/program.h"

namespace partita::codegen {

struct ExecutorOptions {
  /// As CompileOptions has them.
  std::shared_ptr<Generator> generator;
  std::function<Result<CompiledFn>(const Graph& sub_graph, std::shared_ptr<Generator> generator)> compile_sub_graph;
  std::shared_ptr<Communicator> communicator = {};  ///< as BackendOptions have it
  /// Does a call start a collective? Needed with a communicator; asked here, since compiled libraries know no
  /// operators.
  std::function<bool(const Op*)> starts_collective = {};
  std::set<int> fixed_inputs;
  std::shared_ptr<SharedWeights> packed = {};  ///< shared with executables that take the same weights; may be null
  /// Runs the kernels, whose code was loaded for it; null: they run in this process.
  std::shared_ptr<KernelDevice> device = {};
  /// Prepares the extern calls that the device does not do: Machine::prepare(), or what a library has for it.
  PrepareExtern prepare = prepare_evaluation;
};

/// Prepares a program to run with these values of its symbols (none: its sizes are numbers), for which its guards must
/// hold. `code` has the functions of its kernels; null if it has no kernels. `constants`: by name, as its buffers name
/// them. Errors: codegen.program when constants or functions are missing, schedule.symbol, codegen.link.
Result<std::unique_ptr<Executable>> load_program(std::shared_ptr<const Program> program,
                                                 const std::map<std::string, std::int64_t>& sizes,
                                                 std::shared_ptr<LoadedCode> code,
                                                 const std::map<std::string, Tensor>& constants,
                                                 const ExecutorOptions& options = {});

}  // namespace partita::codegen
