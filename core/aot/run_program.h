#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/aot/aot.h"
#include "core/aot/autograd_cache.h"
#include "core/aot/graph_io.h"
#include "core/aot/wrapper.h"
#include "core/load/session.h"
#include "core/tensor/generator.h"

namespace partita {

struct RunOptions {
  AotOptions aot = {};  ///< aot.train: differentiate from `tangent.N`; if none is given, from ones for scalar outputs
  CompileFn forward;
  CompileFn backward;                              ///< unused without train
  std::function<Status(const Graph&)> joint = {};  ///< sees the joint graph before it is partitioned; may be null
  /// Seed for parameters, buffers and inputs that neither the archive nor the IO file has; unset: they are errors.
  std::optional<std::uint64_t> random_weights = {};
  std::uint64_t seed = Generator::default_seed;  ///< of functionalised random numbers
  std::shared_ptr<const GraphCache> cache = {};  ///< of the compiler that `forward` and `backward` are; null: none
  /// Puts the inputs where the compiled code has them, once; null: they stay where they are.
  Status (*place)(std::vector<Value>& values) = nullptr;
  bool lazy_backward = false;  ///< compile the backward when it is first needed, not ahead
};

/// A program prepared to run many times: its graphs are made and compiled, its weights are bound.
class TrainedFunction {
 public:
  /// `io` gives the inputs (`input.N`, `param.NAME`, `buffer.NAME`; core/aot/graph_io.h) and tangents: `tangent.N` of
  /// output N, `tangent.input.N` of input N's value after the run. If it marks nothing by requires_grad, the parameters
  /// are differentiated: the archive's, or those of dynamo's names. Error run.train when there is nothing to
  /// differentiate.
  static Result<TrainedFunction> make(const Artefact& artefact, const TensorFile& io, const RunOptions& options);

  /// Null when they were not made, because the cache had what is made of them.
  std::shared_ptr<const AotGraphs> graphs() const { return graphs_; }
  const Wrappers& wrappers() const { return wrappers_; }
  /// Of memory that make() took for inputs and weights: random ones, and copies of those that are written.
  std::size_t input_bytes() const { return input_bytes_; }
  /// Runs one step; without `gradients`, the forward only. Returns output.N, input_after.N, buffer_after.NAME and, when
  /// training, grad.NAME for parameters (a tied weight's under each of its names) and grad.input.N; for inputs that
  /// overlap and are written, grad.storage.K of their memory instead. Buffers and inputs that the program mutates are
  /// written.
  Result<TensorFile> step(bool gradients = true);

 private:
  static Result<TrainedFunction> compile(const Artefact& artefact, const TensorFile& io, const RunOptions& options);
  /// The caller's inputs that are the graph's input i or lie in it.
  std::vector<std::size_t> inputs_in(std::size_t i) const;
  bool is_base(std::size_t input) const;
  Status copy_written();
  Status place_inputs(Status (*place)(std::vector<Value>&));
  void discard_frozen();
  Result<std::vector<Value>> tangents(const std::vector<Value>& outputs) const;
  Result<std::optional<Tensor>> input_tangent(std::size_t input, const Sizes& sizes) const;
  Status pass_input_tangents(std::vector<Value>& gradients) const;
  Status collect_gradients(const std::vector<Value>& gradients, TensorFile& out) const;

  std::shared_ptr<const ExportedProgram> program_;
  std::shared_ptr<const AotGraphs> graphs_;
  AotSummary made_;
  Wrappers wrappers_;
  std::optional<SubclassWrapper> subclasses_;  ///< also among the wrappers
  BoxedFn run_;                                ///< the forward in its wrappers
  std::shared_ptr<Autograd> autograd_;         ///< null without a backward
  std::size_t input_bytes_ = 0;
  GraphInputs caller_;                      ///< inputs as the caller has them
  GraphInputs inputs_;                      ///< inputs of the forward, as the outer wrappers make them
  std::vector<std::size_t> at_;             ///< by the caller's input: the forward's that it is or lies in
  std::map<std::string, Tensor> tangents_;  ///< given tangents, by key
  std::vector<bool> wants_;                 ///< by input of the forward: differentiate it
  std::vector<Value> joint_tangents_;       ///< tangents of a graph that already was a joint graph
};

/// By placeholder, whether a training run differentiates it: those that the IO file marks, and parameters; parameters
/// of text only if the file marks nothing.
std::vector<bool> inputs_to_differentiate(const Graph& graph, const ExportedProgram* program, const GraphInputs& inputs,
                                          const TensorFile& io);
/// The error run.train.
Diagnostic nothing_to_differentiate(const Graph& graph);

/// Runs the graph as it stands, by a compiler that takes any graph: an interpreter. Results as step()'s.
Result<TensorFile> run_as_it_is(const Artefact& artefact, const TensorFile& io,
                                std::optional<std::uint64_t> random_weights, const CompileFn& compile);
/// Calls make() and runs one step.
Result<TensorFile> run_program(const Artefact& artefact, const TensorFile& io, const RunOptions& options);

}  // namespace partita
