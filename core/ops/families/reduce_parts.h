#pragma once
#include "core/ops/record.h"

namespace partita {

// The parts of the reduce family that have files of their own.
void add_scans(OpTable& t);              ///< scan.cpp: cumsum, cummax, ...
void add_reduce_composites(OpTable& t);  ///< reduce_composite.cpp: var.dim, trace, ...

}  // namespace partita
