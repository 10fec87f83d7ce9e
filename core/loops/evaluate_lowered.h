#pragma once
#include <map>
#include <span>

#include "core/loops/lower.h"
#include "core/tensor/tensor.h"

namespace partita::loops {

/// Computes lowered tensors from their definitions, each on its own: without a plan and without code. It is how an
/// operator is evaluated whose record has loops and no evaluation. `memory` has the tensors of Memory definitions, by
/// id; `outputs` have the results' dtypes and sizes. Sums of single precision are made in double. Sizes are numbers.
/// Errors as evaluate() in scalar_eval.h; ops.arguments of an index that is out of bounds.
Status evaluate(const Lowering& lowering, std::map<int, Tensor> memory, std::span<const LoweredTensor> results,
                std::span<const Tensor> outputs);

}  // namespace partita::loops
