#pragma once
#include <span>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {

/// Operands in one dtype, expanded to their common size and row-major. A null operand becomes a tensor without storage.
struct Operands {
  Sizes sizes;
  std::vector<Tensor> tensors;

  std::int64_t numel() const;  ///< of the common size
};
/// Fails with PyTorch's message when the sizes do not broadcast.
Operands broadcast_load(std::span<const Tensor* const> operands, DType dtype);
/// One operand, expanded to the given sizes.
Tensor expand_load(const Tensor& t, const Sizes& sizes, DType dtype);

}  // namespace partita::kernels
