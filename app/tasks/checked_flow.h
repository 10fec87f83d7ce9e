#pragma once
// `passes --check` of graphs that the flow makes: each stage's passes are checked on the values that a run gives them.
#include <string>
#include <vector>

#include "app/tasks/run_artefact.h"
#include "core/compare/check_passes.h"

namespace partita {

/// The passes of one stage on one graph.
struct CheckedStage {
  std::string graph;  ///< given, functional, joint, forward or backward
  CheckedRun checked;
};

/// What the graph is called that a stage's passes change: given, functional or joint. `joint`: the flow makes one.
std::string graph_of(Stage stage, bool joint);

/// Runs the program by interpreters, with its inputs or random ones (RunRequest::random_weights), and checks the passes
/// of each stage up to `last` on the way. Stops checking at the first failure, which is in the last entry. `post_grad`:
/// for PostGradPasses.
Result<std::vector<CheckedStage>> check_flow(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                             const AotOptions& how, Stage last, const PipelineOptions& post_grad);

}  // namespace partita
