#pragma once
#include <span>

#include "core/base/result.h"
#include "core/loops/scalar.h"
#include "core/tensor/tensor.h"

namespace partita::loops {

/// Writes the value results[i] of every element to outputs[i], one block of elements at a time. It defines what a body
/// means. All outputs have the same sizes; inputs (by slot, with the dtype of their Input node) broadcast to them. An
/// output may be one of the inputs if sizes and strides are equal. Errors: ops.zero_division; ops.dtype when an
/// operation does not exist for its dtype.
Status evaluate(const ScalarBuilder& body, std::span<const Scalar> results, std::span<const Tensor> inputs,
                std::span<const Tensor> outputs);

/// Returns error ops.dtype for the first operation that does not exist for its dtype.
Status check_operations(const ScalarBuilder& body);

/// The error of a node whose operation does not exist for its dtype.
Diagnostic no_operation(const ScalarBuilder& body, const ScalarNode& node);

/// Computes n elements of a node from n elements of each argument.
using NodeKernel = void (*)(void* out, const void* const* args, std::int64_t n);
/// The kernel of a row of scalar_ops.def, of Where, Cast or Bitcast; null if it does not exist for the dtype.
NodeKernel node_kernel(const ScalarBuilder& body, const ScalarNode& node);

}  // namespace partita::loops
