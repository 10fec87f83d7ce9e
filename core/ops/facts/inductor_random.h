#pragma once
#include "core/ir/graph.h"

namespace partita {

/// Does a call of it make the random numbers of a seed as inductor's code does (prims.inductor_random,
/// prims.inductor_randint)? PyTorch's eager draws others.
bool draws_from_seed(const Op* op);

}  // namespace partita
