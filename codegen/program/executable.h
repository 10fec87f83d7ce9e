#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/aot/run_compiled.h"
#include "core/schedule/plan.h"
#include "core/tensor/generator.h"
#include "core/tensor/value.h"

namespace partita::codegen {

class LoadedCode;
class Machine;
struct Program;

struct CompileOptions {
  /// The generator of random operators; null: each run uses a new one with the default seed.
  std::shared_ptr<Generator> generator;
  /// Compiles the sub graphs of cond, while_loop, map_impl and scan, which draw from the executable's generator. What
  /// it refuses is interpreted, and ExternReport::why_not says why; empty: all are.
  std::function<Result<CompiledFn>(const Graph& sub_graph, std::shared_ptr<Generator> generator)> compile_sub_graph;
  bool keep_text = false;  ///< fill Executable::ir and assembly; does not use stored code
  /// Inputs whose values do not change between runs, which the caller promises (the weights of an inference). They are
  /// packed for libraries once.
  std::set<int> fixed_inputs;
  std::string configuration;  ///< a part of the key of stored code
  /// Loads stored machine code by key (nullopt: none), and stores new code.
  std::function<std::optional<std::string>(const std::string& key)> load_code;
  std::function<void(const std::string& key, const std::string& code)> store_code;
};

struct CompileTimes {
  double emit_ms = 0, optimise_ms = 0, generate_ms = 0;  ///< LLVM, summed over threads
  double compile_ms = 0;                                 ///< wall time of LLVM; 0 when the code was stored
  double link_ms = 0;
  double prepare_ms = 0;  ///< extern calls
  double total_ms = 0;
  bool from_store = false;
};

/// Which library does a call, if any.
struct ExternReport {
  std::string node, op, library;
  /// Why no library that has the operator does this call, or why its sub graphs are interpreted; else
  /// empty.
  std::string why_not;
  /// How the pointwise work on the result is done: "in blocks of 8 rows", or by a kernel of its own and why; empty
  /// without such work.
  std::string work;
};

/// A compiled plan. Only one run at a time: calls from several threads wait for one another.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Takes the values of the graph's inputs and returns those of its outputs. A tensor with other strides than the
  /// plan's is copied first. Errors: run.inputs, run.input (count, kind, dtype, sizes), and those of interpreted calls.
  /// `into`: by output, memory that the caller would like the result in, laid out as the tensor says; none for the
  /// rest. A result that cannot be made there lies elsewhere.
  virtual Result<std::vector<Value>> run(const std::vector<Value>& inputs, std::span<const Tensor> into = {}) = 0;

  CompileTimes times;
  std::vector<ExternReport> externs;
  std::string ir, assembly;  ///< set with keep_text
  /// By step of the program: the plan's that it comes from; empty for a program that was not made now.
  std::vector<std::size_t> plan_steps;
  /// Gets the seconds of each of the program's steps in each run; null: they are not measured.
  std::vector<double>* step_seconds = nullptr;
};

/// A plan's program with its kernels' code, which load_program() (executor.h) prepares to run. One serves all sizes of
/// a plan with symbols.
struct CompiledProgram {
  std::shared_ptr<const Program> program;
  std::shared_ptr<LoadedCode> code;          ///< null without kernels
  std::vector<std::string> objects;          ///< what `code` was loaded from
  std::string code_key = {};                 ///< of the objects in the store; empty without kernels or a store
  std::vector<std::size_t> plan_steps = {};  ///< as Executable has them
  CompileTimes times;
  std::string ir, assembly;  ///< set with keep_text
};
/// `machine`: open. Errors: make_program()'s, and those of its compiler.
Result<CompiledProgram> compile_program(const Machine& machine, const schedule::Plan& plan,
                                        const CompileOptions& options = {});

/// Compiles a plan. `constants`: the Graph::attributes that the plan's constant buffers name. Errors as
/// compile_program().
Result<std::unique_ptr<Executable>> compile_plan(const Machine& machine, const schedule::Plan& plan,
                                                 const std::map<std::string, Tensor>& constants,
                                                 const CompileOptions& options = {});

}  // namespace partita::codegen
