#pragma once
#include <vector>

#include "core/ir/graph.h"

namespace partita::schedule {

/// Chooses channels-last strides for results of convolutions of these dtypes and for what is computed from them element
/// by element, if their memory is not visible outside of the graph. Changes the metas of these nodes. A region keeps
/// its layout if transpositions at its borders cost more than its convolutions gain. Precondition: sizes and strides
/// are numbers.
void prefer_channels_last(Graph& graph, const std::vector<DType>& dtypes);
/// Those for which this machine has kernels that work so, halves in floats. They need AVX2.
std::vector<DType> channels_last_dtypes();

}  // namespace partita::schedule
