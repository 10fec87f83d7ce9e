#pragma once
#include <cstdint>

#include "core/base/result.h"
#include "core/dtensor/placement.h"
#include "core/ir/graph.h"

namespace partita {

/// Does the graph, as dynamo prints it, have DTensors among its values?
bool has_dtensors(const Graph& graph);

/// The sizes of the mesh: `known` where it is not empty; else what the sizes of whole tensors and of the rank's own
/// tell (from_local, to_local), and `ranks`, where it is not 0. Error dtensor.mesh: they contradict one another, or
/// leave it open; dtensor.meshes: the graph has two.
Result<Sizes> mesh_of(const Graph& graph, const Sizes& known, std::int64_t ranks);

}  // namespace partita
