#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/compare/compare.h"
#include "core/load/session.h"
#include "core/passes/pipeline.h"

namespace partita {

/// The first pass that changed the numbers.
struct PassFailure {
  std::string pass;
  std::string node;          ///< the first node, in the graph after the pass, that is wrong
  std::string origin;        ///< of that node
  bool node_is_new = false;  ///< made by the pass; `seen_at` is then the first node before and after that differs
  std::string seen_at;
  Difference difference;  ///< of the output that told
};

struct CheckedRun {
  PipelineRun run;  ///< up to the pass that failed, itself included
  std::optional<PassFailure> failure;
};

/// The stage whose passes a graph of this kind goes through.
PassStage stage_of(ArtefactKind kind);

/// Does the call draw random numbers? Dropout with probability 0, or outside of training, does not.
bool draws_random(const Node& node);

/// Tolerance for the comparison of a graph with itself after a pass: reassociation is allowed, casts are not lost.
Tolerance pass_tolerance(DType t);

/// run_passes() that interprets the graph before and after each pass that changed it, with the same inputs, and stops
/// at the first whose outputs differ. Random operators make this meaningless: error check.random names one.
Result<CheckedRun> run_passes_checked(Graph& graph, std::span<const Pass> passes, PassContext& context,
                                      const std::vector<Value>& inputs, const PipelineOptions& options = {});

}  // namespace partita
