#pragma once
#include <span>

#include "core/base/result.h"
#include "core/loops/scalar.h"
#include "core/tensor/tensor.h"

namespace partita::loops {

/// Writes value results[i] of every element to outputs[i]: the reference meaning of a body, a block of elements at a
/// time. Outputs have one size; inputs (by slot, of the dtype of their Input node) broadcast to it. Outputs may be
/// inputs of the same geometry. Errors: ops.zero_division, and ops.dtype for an operation that its dtype does not have.
Status evaluate(const ScalarBuilder& body, std::span<const Scalar> results, std::span<const Tensor> inputs,
                std::span<const Tensor> outputs);

/// Error ops.dtype for the first operation that its dtype does not have.
Status check_operations(const ScalarBuilder& body);

/// Computes n elements of one node from its arguments' elements.
using NodeKernel = void (*)(void* out, const void* const* args, std::int64_t n);
/// Of a row of scalar_ops.def, Where, Cast or Bitcast; null for an operation that its dtype does not have.
NodeKernel node_kernel(const ScalarBuilder& body, const ScalarNode& node);

}  // namespace partita::loops
