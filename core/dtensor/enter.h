#pragma once
#include <cstdint>
#include <memory>

#include "core/base/result.h"
#include "core/dtensor/placement.h"
#include "core/ir/graph.h"

namespace partita {

/// Copies a graph of DTensors, as dynamo prints it, so that its inputs and results are the tensors that one rank of the
/// mesh has. Between them stay whole tensors, which begin and end at _dtensor.from_local and _dtensor.to_local
/// (core/ops/families/dtensor.cpp); where the text prints a value's placements, _dtensor.placed has them. Errors:
/// dtensor.*: what is not followed, with the node.
Result<std::unique_ptr<Graph>> with_local_inputs(const Graph& graph, const Mesh& mesh);

/// Does the graph, as dynamo prints it, have DTensors among its values?
bool has_dtensors(const Graph& graph);

/// The sizes of the mesh: `known` where it is not empty; else what the sizes of whole tensors and of the rank's own
/// tell (from_local, to_local), and `ranks`, where it is not 0. Error dtensor.mesh: they contradict one another, or
/// leave it open; dtensor.meshes: the graph has two.
Result<Sizes> mesh_of(const Graph& graph, const Sizes& known, std::int64_t ranks);

}  // namespace partita
