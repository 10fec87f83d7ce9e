#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/passes/pass.h"

namespace partita {

using PassNames = std::set<std::string, std::less<>>;
/// The configuration's disable_passes; "all" stands for all that are not needed.
PassNames configured_disabled();
/// Error passes.name for one that no stage has, among these and in the configuration's pass_order.
Status check_pass_names(const PassNames& names);

/// The record of one pass.
struct PassRun {
  std::string name;
  Stage stage = Stage::PostGradPasses;
  bool disabled = false;
  bool changed = false;
  double milliseconds = 0;                        ///< of the pass itself
  std::size_t nodes_before = 0, nodes_after = 0;  ///< sub graphs included
  /// The graph after the pass, if snapshots were asked for. A pass that changed nothing shares the graph before it.
  std::shared_ptr<const Graph> after;
  std::vector<RewriteStep> rewrites;  ///< in order; empty where the pass changes all at once
};

struct PipelineOptions {
  PassNames disabled = configured_disabled();
  int stop_after = -1;     ///< run only this many passes, counting disabled ones; -1: all
  bool snapshots = false;  ///< keep the graph before the first pass and after each pass that changed it
  const Progress* progress = nullptr;
  /// Called after each pass that changed the graph. It returns false to stop the pipeline.
  std::function<Result<bool>(const Graph& before, const Graph& after, const PassRun& run)> changed;
};

struct PipelineRun {
  std::shared_ptr<const Graph> before;  ///< set if snapshots were asked for
  std::vector<PassRun> passes;          ///< one per pass reached
  std::set<std::string> fixed = {};     ///< of the context
};

/// Runs the passes in order on the graph and its sub graphs. After each pass it records the time, compares the pass's
/// claim "unchanged" with the graph's hash, verifies the structure, and checks that outputs keep dtype, sizes and
/// strides. A violation is a bug of the pass: Fault::Internal, pipeline.*, naming it. Outputs that change before
/// autograd had a wrong annotation in the file: error pipeline.annotation.
Result<PipelineRun> run_passes(Graph& graph, std::span<const Pass> passes, PassContext& context,
                               const PipelineOptions& options = {});
/// The graph after only the first `count` rewrites of a pass, which got `before`.
Result<std::unique_ptr<Graph>> after_rewrites(const Graph& before, const Pass& pass, const PassContext& context,
                                              std::size_t count);
/// The passes of one stage in passes.def. Those that the configuration's pass_order names stand in its order, in the
/// places that they have among the others.
std::vector<Pass> passes_of(Stage stage);

}  // namespace partita
