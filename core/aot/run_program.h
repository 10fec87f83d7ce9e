#pragma once
#include <cstdint>
#include <optional>

#include "core/aot/aot.h"
#include "core/base/progress.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace partita {

struct RunOptions {
  AotOptions aot = {};  ///< aot.train: differentiate the outputs with `tangent.N` (ones for a scalar loss)
  CompileFn forward;
  CompileFn backward;  ///< unused without train
  /// Fills parameters, buffers and inputs that neither the archive nor the IO file has.
  std::optional<std::uint64_t> random_weights = {};
  const Progress* progress = nullptr;
};

struct RunResult {
  TensorFile out;  ///< output.N, input_after.N, buffer_after.NAME, grad.NAME, grad.input.N and their aliases
  AotGraphs graphs;
};

/// A program made ready to run again and again: the graphs compiled, weights bound.
class TrainedFunction {
 public:
  /// `io` gives the inputs (design: `input.N`, `param.NAME`, `buffer.NAME`, `tangent.N`).
  static Result<TrainedFunction> make(const Artefact& artefact, const TensorFile& io, const RunOptions& options);

  const AotGraphs& graphs() const { return graphs_; }
  /// One step: outputs and, when training, gradients. Buffers and inputs that the program mutates are written.
  Result<TensorFile> step();

 private:
  AotGraphs graphs_;
  Executable forward_, backward_;
  std::vector<Value> inputs_;                              ///< per placeholder of the forward
  std::vector<std::optional<Tensor>> tangents_;            ///< from IO, per user output
  std::vector<std::string> names_;                         ///< per placeholder: "input.N", "param.NAME", "buffer.NAME"
  std::vector<std::pair<std::string, std::string>> tied_;  ///< other names of a parameter
};

/// The whole flow on one artefact: graph, AOT, compile, run once. Errors run.input (a missing, surplus or misshapen
/// input), run.weights (a parameter nobody gives).
Result<RunResult> run_program(const Artefact& artefact, const TensorFile& io, const RunOptions& options);

}  // namespace partita
