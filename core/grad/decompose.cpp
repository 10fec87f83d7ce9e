
#include "core/grad/joint.h"
#include "core/ir/replace_uses.h"
#include "core/ops/composite.h"
#include "core/ops/record.h"

namespace partita {
namespace {

/// Replaces the calls for which `simpler` holds until none is left.
Status decompose_where(Graph& graph, bool (*simpler)(const Op*)) {
  Node* node = graph.first();
  while (node) {
    if (!simpler(node->op())) {
      node = node->next();
      continue;
    }
    Node* previous = node->previous();
    TRY(Arg value, decompose(*node, true));
    if (value.node() == node) {
      node = node->next();
      continue;
    }
    TRY_DO(replace_uses(*node, value));
    graph.erase(node);
    node = previous ? previous->next() : graph.first();
  }
  return {};
}

}  // namespace

Status decompose_to_core(Graph& graph) {
  return decompose_where(graph, decomposes_to_core);
}

Status decompose_as_functorch(Graph& graph) {
  return decompose_where(graph, [](const Op* op) {
    const OpRecord* record = op->kind == OpKind::Torch ? ops().find(op) : nullptr;
    return record && record->aot_decomposed;
  });
}

}  // namespace partita
