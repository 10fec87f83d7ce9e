#pragma once
#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// The inputs that functionalised random numbers add to a joint graph, by PyTorch's names: fwd_seed_1 and
/// fwd_base_offset_1 of the forward, bwd_seed_1 and bwd_base_offset_1 of the backward.
bool is_forward_seed(const Node& node);
bool is_backward_seed(const Node& node);

/// Makes random calls functions of a seed and an offset, as PyTorch's functionalize_rng_ops does: the calls of its
/// table (torch/_decomp/decompositions_for_rng.py) are decomposed to uniform numbers, and these become
/// rngprims.philox_rand. Seed and base offset become the last inputs, for a joint graph those of the forward, then
/// those of the backward. The new offset becomes the last of the first `forward_outputs` + 1 outputs; a joint graph
/// returns the backward's as its last output. Calls that the table lacks keep drawing from the generator. Error
/// functional_rng.region: a sub graph that draws.
Status functionalize_random(Graph& graph, std::size_t forward_outputs);

}  // namespace partita
