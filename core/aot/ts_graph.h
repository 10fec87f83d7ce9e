#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// torch._functorch.compile_utils.strip_overloads: aten.mm.default becomes aten.mm, the operator without its overload.
void strip_overloads(Graph& graph);
/// Does what ts_compile does before scripting: _to_copy with only a dtype becomes aten.to, and devices become the names
/// of their types.
void canonicalize_for_script(Graph& graph);
/// Chooses the overload of operators without one by their arguments, as the script compiler does. Metas must be known.
Status choose_overloads(Graph& graph);

}  // namespace partita
