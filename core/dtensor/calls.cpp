#include "core/dtensor/calls.h"

#include <algorithm>

#include "core/dtensor/placement.h"

namespace partita {

bool is_from_local(const Node& node) {
  static const Op* op = Op::get(OpKind::Function, "torch.distributed.tensor._api.from_local");
  return node.is(op);
}

bool is_method_of_dtensor(const Node& node, const char* method) {
  if (!node.is(Op::get(OpKind::Method, method)) || node.args().empty()) return false;
  const Node* self = node.args()[0].node();
  return self && is_dtensor(self->meta);
}

PlacementCall placement_call(const Node& node) {
  static const auto of = [](const char* name) {
    return Op::get(OpKind::Function, std::string("torch.distributed.tensor.placement_types.") + name);
  };
  static const Op *replicate = of("Replicate"), *shard = of("Shard"), *partial = of("Partial");
  if (node.is(replicate)) return PlacementCall::Replicate;
  if (node.is(shard)) return PlacementCall::Shard;
  return node.is(partial) ? PlacementCall::Partial : PlacementCall::None;
}

const Op* from_local_op() {
  static const Op* op = Op::torch("_dtensor.from_local.default");
  return op;
}
const Op* to_local_op() {
  static const Op* op = Op::torch("_dtensor.to_local.default");
  return op;
}
const Op* redistribute_op() {
  static const Op* op = Op::torch("_dtensor.redistribute.default");
  return op;
}
const Op* placed_op() {
  static const Op* op = Op::torch("_dtensor.placed.default");
  return op;
}

bool has_dtensor_calls(const Graph& graph) {
  return std::ranges::any_of(graph, [](const Node* n) { return n->is(from_local_op()); });
}

}  // namespace partita
