#include "core/interp/aten_calls.h"
#include "core/ops/schema/in_place.h"
#include "core/passes/pass.h"

namespace partita {

Result<bool> resolve_torch_calls(Graph& graph, PassContext&) {
  const bool moves = changes_geometry(graph);
  follow_in_place(graph);
  TRY(const bool resolved, resolve_calls(graph, true));
  return moves || resolved;
}

}  // namespace partita
