#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace partita {

/// Is there a dimension of several elements with stride 0, as expand makes? at::has_internal_overlap says Yes to them.
inline bool repeats_elements(const Tensor& t) {
  if (t.numel() == 0) return false;
  for (std::size_t d = 0; d < t.sizes.size(); ++d)
    if (t.strides[d] == 0 && t.sizes[d] > 1) return true;
  return false;
}

/// May elements of this layout share memory? The dimensions by their strides, each must step over all that those before
/// it reach; layouts of which that is not so, but which interleave, count as sharing too.
inline bool may_share_elements(const Sizes& sizes, const Sizes& strides) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, size
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) dims.emplace_back(strides[d], sizes[d]);
  }
  std::ranges::sort(dims);
  std::int64_t last = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= last) return true;
    last += stride * (size - 1);
  }
  return false;
}

/// What PyTorch says of writing to such a tensor.
inline constexpr const char* repeated_elements =
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation.";

}  // namespace partita
