#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>

namespace partita {

/// Does the stride of dimension d say where elements lie? Not where the dimension has one index, nor in a tensor
/// without elements: the rule of torch._prims_common.check_significant_strides. `sizes` are integers or SymExpr; a
/// symbol may be any number, so its stride counts.
template <class SizeList>
bool is_significant_stride(const SizeList& sizes, std::size_t d) {
  return sizes[d] != 1 && std::none_of(sizes.begin(), sizes.end(), [](const auto& size) { return size == 0; });
}

/// Do the significant strides of two tensors of these sizes agree, by agree(a[d], b[d])? Asks from the first dimension
/// on until one does not.
template <class SizeList, class Strides, class OtherStrides, class Agree = std::equal_to<>>
bool same_significant_strides(const SizeList& sizes, const Strides& a, const OtherStrides& b, Agree agree = {}) {
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (is_significant_stride(sizes, d) && !agree(a[d], b[d])) return false;
  return true;
}

}  // namespace partita
