// Removes nodes without users. Nodes that write memory, draw random numbers (later draws would change) or raise stay.
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/passes/pass.h"

namespace partita {

Result<bool> remove_dead(Graph& graph, PassContext& context) {
  return graph.eliminate_dead([&](const Node& n) { return has_effect(n) || !context.may_rewrite("dead", n); }) > 0;
}

}  // namespace partita
