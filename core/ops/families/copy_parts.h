#pragma once
#include "core/ops/record.h"

namespace partita {

// The parts of the cast family that have files of their own.
void add_blocks(OpTable& t);  ///< blocks.cpp: _chunk_cat, narrow_copy, resize
void add_joins(OpTable& t);   ///< join.cpp: cat, stack, repeat, flip, roll, tril

}  // namespace partita
