#include <algorithm>
#include <functional>

#include "core/grad/joint.h"
#include "core/ir/replace_uses.h"
#include "core/ops/composite.h"
#include "core/ops/record.h"

namespace partita {
namespace {

/// Replaces calls that `simpler` names until none is left.
Status decompose_where(Graph& graph, const std::function<bool(const Op*)>& simpler) {
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

/// torch._functorch.compilers.default_decompositions, as the module writes it. A name without overload means all
/// overloads.
constexpr std::string_view functorch_table[] = {
    "aten.detach",
    "aten.gelu_backward",
    "aten.leaky_relu_backward",
    "aten.sigmoid_backward",
    "aten.threshold_backward",
    "aten.hardtanh_backward",
    "aten.hardsigmoid_backward",
    "aten.hardswish_backward",
    "aten.tanh_backward",
    "aten.silu_backward",
    "aten.elu_backward",
    "aten.cudnn_batch_norm",
    "aten.cudnn_batch_norm_backward",
    "aten.masked_fill",
    "aten.elu",
    "aten.leaky_relu",
    "aten.hardtanh",
    "aten.hardswish",
    "aten.hardsigmoid",
    "aten.conj_physical",
    "aten.is_same_size",
};

}  // namespace

Status decompose_to_core(Graph& graph) {
  return decompose_where(graph, decomposes_to_core);
}

Status decompose_as_functorch(Graph& graph) {
  return decompose_where(graph, [](const Op* op) {
    const OpRecord* record = op->kind == OpKind::Torch ? ops().find(op) : nullptr;
    return record && (record->compile_decompose || record->decompose) &&
           std::ranges::find(functorch_table, op->name.substr(0, op->name.rfind('.'))) != std::end(functorch_table);
  });
}

}  // namespace partita
