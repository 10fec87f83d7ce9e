#include "core/interp/aten_calls.h"
#include "core/passes/pass.h"

namespace partita {

Result<bool> resolve_torch_calls(Graph& graph, PassContext&) {
  return resolve_calls(graph);
}

}  // namespace partita
