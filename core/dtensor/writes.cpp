#include "core/dtensor/writes.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/dtensor/calls.h"
#include "core/functionalize/to_aten.h"
#include "core/ir/place.h"
#include "core/ops/facts/alias.h"

namespace partita {

Status refuse_writes(const Graph& graph) {
  // What torch-level calls write is seen once they are ATen's.
  TRY(const AtenGraph aten, to_aten(graph));
  const auto becomes_dtensor = [](const Node* user) { return user->is(from_local_op()); };
  for (const Node* node : *aten.graph)
    for (const Node* written : written_by(*node)) {
      const Node* memory = memory_owner(static_cast<const Node*>(written));
      if (memory->is_placeholder() && std::ranges::none_of(memory->users(), becomes_dtensor)) continue;
      return unsupported(
          "dtensor.write",
          fmt::format("{} writes to its argument, which is not followed in a graph of DTensors", node->op()->brief()),
          place_of(*node));
    }
  return {};
}

}  // namespace partita
