#pragma once
#include <complex>
#include <vector>

#include "core/tensor/tensor.h"

namespace partita::kernels {

/// The sums of `in` over the dims that are `reduced`, row-major over the others, added up in the order of PyTorch's sum
/// (cascade_sum of native/cpu/SumKernel.cpp, over the dims as TensorIterator arranges them; one thread). For float and
/// complex<float>.
template <class T>
void cascade_sum(const Tensor& in, const std::vector<bool>& reduced, T* out);

}  // namespace partita::kernels
