#pragma once
#include "core/base/result.h"
#include "core/ir/meta.h"

namespace partita {

/// Sizes and strides are integers, and the elements and bytes they reach are, as far as they are known, numbers of 64
/// bits. Error tensor.size or sym.overflow. What a file says and what is inferred is held to this, so that nobody who
/// computes with a meta has to.
Status check_extent(const TensorMeta& meta);

}  // namespace partita
