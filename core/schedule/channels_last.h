#pragma once
#include <vector>

#include "core/ir/graph.h"

namespace partita::schedule {

/// Chooses channels-last strides for results of convolutions, and for what is computed from them element by element,
/// where nobody outside of the graph sees the memory: the metas of such nodes are changed. Regions of the graph that
/// would be transposed at their borders more than their convolutions gain stay as they are. `dtypes`: of convolutions
/// that the library computes so. Precondition: sizes and strides are numbers.
void prefer_channels_last(Graph& graph, const std::vector<DType>& dtypes);

}  // namespace partita::schedule
