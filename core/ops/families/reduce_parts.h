#pragma once
#include "core/ops/record.h"

namespace partita {

// The parts of the reduce family that have files of their own.
void add_scans(OpTable& t);               ///< scan.cpp: cumsum, cummax, ...
void add_renorm(OpTable& t);              ///< renorm.cpp: renorm, hash_tensor
void add_histograms(OpTable& t);          ///< histogram.cpp
void add_segment_reductions(OpTable& t);  ///< segment_reduce.cpp
void add_reduce_composites(OpTable& t);   ///< reduce_composite.cpp: var.dim, trace, ...

}  // namespace partita
