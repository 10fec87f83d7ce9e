#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/aot/shared_inputs.h"
#include "core/load/session.h"

namespace partita {

struct RunOptions {
  AotOptions aot = {};  ///< aot.train: differentiate from `tangent.N`; if none is given, from ones for scalar outputs
  CompileFn forward;
  CompileFn backward;                              ///< unused without train
  std::function<Status(const Graph&)> joint = {};  ///< sees the joint graph before it is partitioned; may be null
  /// Seed for parameters, buffers and inputs that neither the archive nor the IO file has; unset: they are errors.
  std::optional<std::uint64_t> random_weights = {};
};

/// A program prepared to run many times: its graphs are made and compiled, its weights are bound.
class TrainedFunction {
 public:
  /// `io` gives the inputs (`input.N`, `param.NAME`, `buffer.NAME`; see design.md) and tangents: `tangent.N` of output
  /// N, `tangent.input.N` of input N's value after the run. If it marks nothing by requires_grad, the parameters are
  /// differentiated: the archive's, or those of dynamo's names. Error run.train when there is nothing to differentiate.
  static Result<TrainedFunction> make(const Artefact& artefact, const TensorFile& io, const RunOptions& options);

  const AotGraphs& graphs() const { return *graphs_; }
  /// Runs one step. Returns output.N, input_after.N, buffer_after.NAME and, when training, grad.NAME for parameters (a
  /// tied weight's under each of its names) and grad.input.N; for inputs that overlap and are written, grad.storage.K
  /// of their memory instead. Buffers and inputs that the program mutates are written.
  Result<TensorFile> step();

 private:
  Result<std::vector<Value>> tangents(const std::vector<Value>& outputs) const;
  Result<std::optional<Tensor>> input_tangent(std::size_t input, const Sizes& sizes) const;
  Status pass_input_tangents(std::vector<Value>& gradients) const;
  Status collect_gradients(const std::vector<Value>& gradients, TensorFile& out) const;

  std::shared_ptr<const Program> program_;
  std::shared_ptr<AotGraphs> graphs_;  ///< at a stable address, because the executables refer to its graphs
  CompiledFn forward_, backward_;
  GraphInputs inputs_;                      ///< inputs of the forward
  SharedInputs shared_;                     ///< how the forward's inputs are made of the caller's
  std::map<std::string, Tensor> tangents_;  ///< given tangents, by key
  std::vector<bool> wants_;                 ///< by input of the forward: differentiate it
  std::vector<Value> joint_tangents_;       ///< tangents of a graph that already was a joint graph
};

/// Calls make() and runs one step.
Result<TensorFile> run_program(const Artefact& artefact, const TensorFile& io, const RunOptions& options);

}  // namespace partita
