#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>

namespace partita {

/// Says whether the stride of dimension d decides where elements lie. It does not in a dimension of size 1, nor in a
/// tensor without elements (torch._prims_common.check_significant_strides). `sizes` are integers or SymExpr; the stride
/// of a symbolic size counts, because the symbol may have any value.
bool is_significant_stride(const auto& sizes, std::size_t d) {
  return sizes[d] != 1 && std::none_of(sizes.begin(), sizes.end(), [](const auto& size) { return size == 0; });
}

/// Says whether agree(a[d], b[d]) holds for every significant stride of two tensors of these sizes. Asks from the first
/// dimension on and stops at the first mismatch.
template <class SizeList, class Strides, class OtherStrides, class Agree = std::equal_to<>>
bool same_significant_strides(const SizeList& sizes, const Strides& a, const OtherStrides& b, Agree agree = {}) {
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (is_significant_stride(sizes, d) && !agree(a[d], b[d])) return false;
  return true;
}

}  // namespace partita
