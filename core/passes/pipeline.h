#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/passes/pass.h"

namespace partita {

/// What one pass did.
struct PassRun {
  std::string name;
  PassStage stage = PassStage::PostGrad;
  bool disabled = false;
  bool changed = false;
  double milliseconds = 0;                        ///< of the pass itself
  std::size_t nodes_before = 0, nodes_after = 0;  ///< sub graphs included
  /// The graph after the pass, when snapshots were asked for; unchanged passes share the one before.
  std::shared_ptr<const Graph> after;
};

struct PipelineOptions {
  std::set<std::string, std::less<>> disabled;
  int stop_after = -1;     ///< run only so many passes, disabled ones counted; -1: all
  bool snapshots = false;  ///< keep the graph before and after each changed pass
  const Progress* progress = nullptr;
  /// Called after each pass that changed the graph; false stops the pipeline there.
  std::function<Result<bool>(const Graph& before, const Graph& after, const PassRun& run)> changed;
};

struct PipelineRun {
  std::shared_ptr<const Graph> before;  ///< set when snapshots were asked for
  std::vector<PassRun> passes;          ///< one for each pass that had its turn
};

/// Runs the passes in order on the graph and its sub graphs. After each: times it, holds "unchanged" against the
/// graph's hash, verifies the structure, and sees that outputs keep dtype, sizes and strides. Breaking one of these is
/// a bug of the pass: Fault::Internal, pipeline.*, naming it.
Result<PipelineRun> run_passes(Graph& graph, std::span<const Pass> passes, PassContext& context,
                               const PipelineOptions& options = {});
/// The passes of one stage out of passes.def.
std::vector<Pass> passes_of(PassStage stage);

}  // namespace partita
