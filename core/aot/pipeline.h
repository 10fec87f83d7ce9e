#pragma once
// The flow (core/ir/flow.def) from a file's graph to the graphs that a compiler gets; aot() runs it. After it each
// compiler runs post_grad_passes() on the graph that it gets, and compiles it; interpreters run the graph as it is.
#include <memory>

#include "core/passes/run_passes.h"

namespace partita {

class Artefact;
struct AotOptions;
struct AotGraphs;

/// The record of one stage that ran.
struct StageRun {
  Stage stage = Stage::PreGradPasses;
  double milliseconds = 0;
  std::size_t nodes = 0;  ///< of the graph after it; of Partition's forward and backward together
  PipelineRun run;        ///< of stages that run passes
  /// The graph after the stage, if snapshots were asked for; for Partition the forward.
  std::shared_ptr<const Graph> after;
};

/// The options by which `run`, `compare`, `check`, `bench` and `minify` make the graphs that they compile. They differ
/// from AOTAutograd's own in two ways: outputs that are aliases take tangents, because there is no autograd outside of
/// the graph, and graphs of complex inputs return new values instead of writing them.
AotOptions as_run(const Graph& graph, AotOptions options);
/// The same for an artefact's graph: a log's is cut as its PyTorch was configured.
AotOptions as_run(const Graph& graph, const Artefact& artefact, AotOptions options);
/// Error aot.cut for a graph that PyTorch's flow has cut out already (a forward, a backward, a graph of inference),
/// which is not differentiated unless somebody asks for that. A joint graph passes.
Status check_not_cut(const Graph& graph, const Artefact& artefact);

/// The stage PostGradPasses, as every compiler begins with it. Infers the metas that text lacks; error
/// ops.unknown or what else makes a call impossible to evaluate.
Result<PipelineRun> post_grad_passes(Graph& graph, PassContext& context, const PipelineOptions& options = {});
/// What post_grad_passes() does before its first pass.
Status prepare_post_grad(Graph& graph);

}  // namespace partita
