#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/load/session.h"

namespace partita {

struct RunOptions {
  AotOptions aot = {};  ///< aot.train: differentiate the outputs with `tangent.N` (ones for scalars when none is given)
  CompileFn forward;
  CompileFn backward;                              ///< unused without train
  std::function<Status(const Graph&)> joint = {};  ///< sees the joint graph before it is partitioned; may be null
  /// Fills parameters, buffers and inputs that neither the archive nor the IO file has.
  std::optional<std::uint64_t> random_weights = {};
};

/// A program made ready to run again and again: graphs made and compiled, weights bound.
class TrainedFunction {
 public:
  /// `io` gives the inputs (design: `input.N`, `param.NAME`, `buffer.NAME`, `tangent.N`). Without requires_grad in it,
  /// parameters are differentiated: the archive's, or dynamo's by name. Error run.train when nothing is to be.
  static Result<TrainedFunction> make(const Artefact& artefact, const TensorFile& io, const RunOptions& options);

  const AotGraphs& graphs() const { return *graphs_; }
  /// One step: output.N, input_after.N, buffer_after.NAME and, when training, grad.NAME for parameters (a tied weight's
  /// under each of its names) and grad.input.N. Buffers and inputs that the program mutates are written.
  Result<TensorFile> step();

 private:
  Result<std::vector<Value>> tangents(const std::vector<Value>& outputs) const;
  Status collect_gradients(const std::vector<Value>& gradients, TensorFile& out) const;

  std::shared_ptr<const Program> program_;
  std::shared_ptr<AotGraphs> graphs_;  ///< at a stable address: the executables refer to its graphs
  Executable forward_, backward_;
  GraphInputs inputs_;                      ///< of the forward
  std::map<std::size_t, Tensor> tangents_;  ///< given ones, by user output
  std::vector<Value> joint_tangents_;       ///< of a graph that was a joint graph already
};

/// make and one step.
Result<TensorFile> run_program(const Artefact& artefact, const TensorFile& io, const RunOptions& options);

}  // namespace partita
