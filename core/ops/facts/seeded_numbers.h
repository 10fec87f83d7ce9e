#pragma once
#include "core/ir/graph.h"

namespace partita {

/// Does a call of it make the random numbers of a seed as inductor's code does (prims.inductor_random,
/// prims.inductor_randint)? Eager draws others,
/// unless told to draw the same (codegen/torch/worker/random_numbers.py); so does inductor for a GPU.
bool draws_from_seed(const Op* op);

/// Does it draw such seeds from the generator (prims.inductor_seed, prims.inductor_seeds)?
bool draws_seeds(const Op* op);

}  // namespace partita
