#pragma once
#include <complex>
#include <vector>

#include "core/tensor/tensor.h"

namespace partita::kernels {

/// Sums `in` over the dimensions marked in `reduced`; `out` is row-major over the others. Terms are added in the order
/// of PyTorch's sum with one thread (cascade_sum of native/cpu/SumKernel.cpp, over the dimensions as TensorIterator
/// arranges them). T is float or complex<float>.
template <class T>
void cascade_sum(const Tensor& in, const std::vector<bool>& reduced, T* out);

}  // namespace partita::kernels
