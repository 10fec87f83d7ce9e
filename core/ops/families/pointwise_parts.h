#pragma once
#include "core/ops/record.h"

namespace partita {

// The parts of the pointwise family that have files of their own.
void add_unary(OpTable& t);
void add_activations(OpTable& t);
void add_pointwise_composites(OpTable& t);  ///< other names, and operators made of two or three

}  // namespace partita
