#pragma once
// The flow from a file's graph to the graphs that a compiler gets; aot() runs it.
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "core/passes/pipeline.h"

namespace partita {

struct AotOptions;
struct AotGraphs;

/// The stages of the flow, in order. After Partition each compiler runs post_grad_passes() on the graph that it gets,
/// and compiles it; interpreters run the graph as it is.
enum class FlowStage : unsigned char {
  PreGradPasses,
  Functional,
  FunctionalPasses,
  Joint,
  EffectTokens,
  FunctionalRng,
  Decompositions,
  JointPasses,
  Freezing,
  Constants,
  Partition
};
std::string_view name_of(FlowStage stage);  ///< "pre_grad_passes"

/// The record of one stage that ran.
struct StageRun {
  FlowStage stage = FlowStage::PreGradPasses;
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

/// The passes of PassStage::PostGrad, as every compiler begins with them. Infers the metas that text lacks; error
/// ops.unknown or what else makes a call impossible to evaluate.
Result<PipelineRun> post_grad_passes(Graph& graph, PassContext& context, const PipelineOptions& options = {});
/// What post_grad_passes() does before its first pass.
Status prepare_post_grad(Graph& graph);

}  // namespace partita
