#pragma once
#include "core/tensor/tensor.h"

namespace partita {

/// Is there a dimension of several elements with stride 0, as expand makes? at::has_internal_overlap says Yes to them.
inline bool repeats_elements(const Tensor& t) {
  if (t.numel() == 0) return false;
  for (std::size_t d = 0; d < t.sizes.size(); ++d)
    if (t.strides[d] == 0 && t.sizes[d] > 1) return true;
  return false;
}

/// What PyTorch says of writing to such a tensor.
inline constexpr const char* repeated_elements =
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation.";

}  // namespace partita
