#pragma once
#include <vector>

#include "core/ir/graph.h"

namespace partita::schedule {

/// Chooses channels-last strides for results of convolutions of these dtypes and for what is computed from them element
/// by element, if their memory is not visible outside of the graph. Changes the metas of these nodes. A region keeps
/// its layout if transpositions at its borders cost more than its convolutions gain. Precondition: sizes and strides
/// are numbers.
void prefer_channels_last(Graph& graph, const std::vector<DType>& dtypes);
/// Those for which this machine's libraries have kernels that work so: oneDNN's need AVX-512. For older instructions it
/// has kernels for layouts in blocks of channels.
std::vector<DType> channels_last_dtypes();

}  // namespace partita::schedule
