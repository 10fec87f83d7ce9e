#pragma once
// The calls of torch.distributed.tensor: as dynamo prints them, and as graphs have them once inputs and results are a
// rank's own tensors (core/ops/families/dtensor.cpp).
#include "core/ir/graph.h"

namespace partita {

bool is_from_local(const Node& node);  ///< torch.distributed.tensor._api.from_local
/// Is it this method, called on a value whose annotation is that of a DTensor?
bool is_method_of_dtensor(const Node& node, const char* method);
/// What torch.distributed.tensor.placement_types makes.
enum class PlacementCall : unsigned char { None, Replicate, Shard, Partial };
PlacementCall placement_call(const Node& node);

const Op* from_local_op();    ///< _dtensor.from_local.default
const Op* to_local_op();      ///< _dtensor.to_local.default
const Op* redistribute_op();  ///< _dtensor.redistribute.default
const Op* placed_op();        ///< _dtensor.placed.default
/// Has the graph such calls?
bool has_dtensor_calls(const Graph& graph);

}  // namespace partita
