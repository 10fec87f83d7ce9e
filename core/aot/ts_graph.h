#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// torch._functorch.compile_utils.strip_overloads: aten.mm.default becomes aten.mm, the operator without its overload.
void strip_overloads(Graph& graph);
/// What ts_compile does before scripting: _to_copy with nothing but a dtype becomes aten.to, devices become the names
/// of their types.
void canonicalize_for_script(Graph& graph);
/// What the script compiler does with operators without an overload: chooses one by the arguments. Metas must be known.
Status choose_overloads(Graph& graph);

}  // namespace partita
