#pragma once
#include "core/ir/graph.h"

namespace partita {

// Three questions about one call, each asked at its own stage.

/// Before autograd: PyTorch's dispatcher takes CompositeImplicitAutograd operators apart, whatever else there is for
/// them.
bool is_composite(const Op* op);
/// To core ATen: it is known by its decomposition alone, or has one for the way to the compiler.
bool decomposes_to_core(const Op* op);
/// For the compiler: as to core ATen, but what has loops of its own stays, and a call whose kernel rounds half types
/// between its steps stays that call.
bool decomposes_for_compiler(const Node& call);

}  // namespace partita
