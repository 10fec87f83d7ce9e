#pragma once
#include "core/base/result.h"
#include "core/tensor/value.h"

namespace partita {

/// float64 for floating dtypes, complex128 for complex ones, itself otherwise.
DType widened(DType t);
/// Tensors of narrower floating or complex dtypes as copies in the widened one; lists item by item.
Result<Value> widened(Value v);

}  // namespace partita
