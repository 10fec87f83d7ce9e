
#include "core/grad/joint.h"
#include "core/ir/replace_uses.h"
#include "core/ops/functorch/functorch_table.h"
#include "core/ops/record/composite.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

using Replacement = Result<Arg> (*)(Node& call);

/// Replaces the calls for which `simpler` holds until none is left.
Status decompose_where(Graph& graph, bool (*simpler)(const Op*), Replacement replacement) {
  Node* node = graph.first();
  while (node) {
    if (!simpler(node->op())) {
      node = node->next();
      continue;
    }
    Node* previous = node->previous();
    TRY(Arg value, replacement(*node));
    if (value.node() == node) {
      node = node->next();
      continue;
    }
    for (Node* made = node->previous(); made != previous; made = made->previous()) made->recompute = node->recompute;
    TRY_DO(replace_uses(*node, value));
    graph.erase(node);
    node = previous ? previous->next() : graph.first();
  }
  return {};
}

}  // namespace

Status decompose_to_core(Graph& graph) {
  return decompose_where(graph, decomposes_to_core, [](Node& call) { return decompose(call, true); });
}

Status decompose_as_functorch(Graph& graph) {
  return decompose_where(graph, in_functorch_table, decompose_by_functorch_table);
}

}  // namespace partita
