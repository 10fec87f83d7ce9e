#include <map>

#include "core/grad/joint.h"
#include "core/ir/replace_uses.h"
#include "core/ops/functorch/functorch_table.h"
#include "core/ops/record/composite_call.h"
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

std::unique_ptr<Graph> renamed_in_order(const Graph& graph) {
  std::unique_ptr<Graph> out = without_nodes(graph);
  std::vector<Node*> unread;
  std::vector<Node*> copy_of(graph.id_limit(), nullptr);
  auto map = [&](Node* n) -> Arg { return copy_of[n->id()]; };
  auto copy = [&](Node* node) {
    if (copy_of[node->id()]) return;
    if (!node->op()->is_call()) {
      copy_of[node->id()] = out->copy_node(*node, map);
      return;
    }
    Node* made = out->create(node->op(), map_nodes(node->args(), map), map_nodes(node->kwargs(), map));
    made->meta = node->meta;
    made->origin = node->origin;
    made->note = node->note;
    made->recompute = node->recompute;
    copy_of[node->id()] = made;
  };
  for (Node* node : graph) {
    copy(node);
    // A tracer makes the getitems of a tuple at once and in order.
    std::map<std::int64_t, Node*> parts;
    for (Node* user : node->users())
      if (user->is(Op::getitem()))
        if (auto* index = user->args()[1].get<std::int64_t>()) parts.emplace(*index, user);
    const MetaTuple* tuple = node->op()->is_call() ? node->meta.tuple() : nullptr;
    for (std::size_t i = 0; tuple && i < tuple->items.size(); ++i) {
      // Unread getitems took names as well.
      auto it = parts.find(static_cast<std::int64_t>(i));
      if (it != parts.end())
        copy(it->second);
      else
        unread.push_back(out->create(Op::getitem(), {copy_of[node->id()], static_cast<std::int64_t>(i)}));
    }
    for (const auto& [index, part] : parts) copy(part);
  }
  for (Node* part : unread) out->erase(part);
  return out;
}

}  // namespace partita
