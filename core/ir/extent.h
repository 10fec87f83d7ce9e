#pragma once
#include "core/base/result.h"
#include "core/ir/meta.h"

namespace partita {

/// Checks that sizes and strides are integers, and that the elements and bytes that they reach are 64-bit numbers, as
/// far as they are known. Error tensor.size or sym.overflow. Metas from files and from inference are checked, so that
/// later code may compute with them.
Status check_extent(const TensorMeta& meta);

}  // namespace partita
