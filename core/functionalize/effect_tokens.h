#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// Is this an input that only calls of with_effects take, as their token?
bool is_effect_token(const Node& node);

/// Chains the calls whose effects PyTorch keeps in order, by with_effects and a token, as AOTAutograd does: the token
/// is the first input and the first output, and what follows is numbered anew (primals_2, arg1_1). These calls are
/// prints, and calls that we know nothing of and nobody reads. Returns the number of tokens: 0 when there is no such
/// call, else 1.
std::size_t thread_effects(Graph& graph);

/// Puts the calls in the places of with_effects, for compilers, which keep effects in the order of the graph. A token
/// that the graph returns is then the one that it was given. Error ops.region: a with_effects without an operator.
Status inline_effects(Graph& graph);

}  // namespace partita
