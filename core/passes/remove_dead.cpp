// Removes nodes without users. Nodes that write memory, draw random numbers (later draws would change) or raise stay.
#include "core/ops/effects.h"
#include "core/ops/record.h"
#include "core/passes/pass.h"

namespace partita {

Result<bool> remove_dead(Graph& graph, PassContext&) {
  return graph.eliminate_dead(has_effect) > 0;
}

}  // namespace partita
