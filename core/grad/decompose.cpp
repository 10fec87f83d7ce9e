#include <fmt/format.h>

#include "core/grad/joint.h"
#include "core/ops/record.h"

namespace partita {
namespace {

Status replace(Graph& graph, Node* node, const Arg& value) {
  if (Node* n = value.node()) {
    node->replace_all_uses_with(n);
    graph.erase(node);
    return {};
  }
  auto* list = value.get<ArgList>();
  for (Node* user : std::vector<Node*>(node->users())) {
    auto* index = user->is(Op::getitem()) ? user->args()[1].get<std::int64_t>() : nullptr;
    if (!list || !index || *index < 0 || static_cast<std::size_t>(*index) >= list->items.size())
      return unsupported("grad.decompose", fmt::format("the results of {} are not read by getitem", node->name()),
                         {.graph = graph.name, .node = node->name()});
    const Arg& item = list->items[static_cast<std::size_t>(*index)];
    if (Node* n = item.node())
      user->replace_all_uses_with(n);
    else
      for (Node* reader : std::vector<Node*>(user->users())) reader->replace_input(user, item);
    graph.erase(user);
  }
  graph.erase(node);
  return {};
}

}  // namespace

namespace {

/// Decomposes the calls for which `simpler` holds and that have a decomposition, until none is left.
Status decompose_where(Graph& graph, bool (*simpler)(const OpRecord&)) {
  Node* node = graph.first();
  while (node) {
    const OpRecord* record = node->op()->kind == OpKind::Torch ? ops().find(node->op()) : nullptr;
    if (!record || !simpler(*record)) {
      node = node->next();
      continue;
    }
    Node* previous = node->previous();
    TRY(Arg value, decompose(*node, true));
    if (value.node() == node) {
      node = node->next();
      continue;
    }
    TRY_DO(replace(graph, node, value));
    node = previous ? previous->next() : graph.first();
  }
  return {};
}

}  // namespace

Status decompose_for_compiler(Graph& graph) {
  return decompose_where(
      graph, [](const OpRecord& r) { return r.compile_decompose || (r.decompose && !r.eval && !r.pointwise.body); });
}

Status decompose_as_functorch(Graph& graph) {
  return decompose_where(graph, [](const OpRecord& r) { return r.aot_decomposed; });
}

}  // namespace partita
