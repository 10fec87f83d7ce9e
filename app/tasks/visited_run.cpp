#include "app/tasks/visited_run.h"

#include <algorithm>

#include "core/ops/record/record.h"

namespace partita {
namespace {

bool calls_users_operators(const Graph& graph) {
  return !config().python_import.empty() && std::ranges::any_of(graph, [](const Node* node) {
    return node->op()->kind == OpKind::Torch && !find_record(node->op());
  });
}

}  // namespace

Result<TensorFile> run_visited(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                               const RunOptions& options) {
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  if (request.train || !calls_users_operators(*graph)) return run_program(artefact, io, options);
  return run_as_it_is(artefact, io, request.random_weights, options.forward);
}

}  // namespace partita
