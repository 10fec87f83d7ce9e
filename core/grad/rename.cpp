#include "core/grad/joint.h"

namespace partita {

std::unique_ptr<Graph> renamed_in_order(const Graph& graph) {
  auto out = std::make_unique<Graph>(graph.name);
  out->form = graph.form;
  out->shapes = graph.shapes;
  out->attributes = graph.attributes;
  for (const auto& [target, child] : graph.children) out->children.emplace_back(target, child->clone());
  std::vector<Node*> twin(graph.id_limit(), nullptr);
  auto map = [&](Node* n) -> Arg { return twin[n->id()]; };
  for (Node* node : graph) {
    if (!node->op()->is_call()) {
      twin[node->id()] = out->copy_node(*node, map);
      continue;
    }
    Args args;
    Kwargs kwargs;
    for (const Arg& a : node->args()) args.push_back(map_nodes(a, map));
    for (const auto& [name, a] : node->kwargs()) kwargs.emplace_back(name, map_nodes(a, map));
    Node* copy = out->create(node->op(), std::move(args), std::move(kwargs));
    copy->meta = node->meta;
    copy->origin = node->origin;
    copy->note = node->note;
    copy->recompute = node->recompute;
    twin[node->id()] = copy;
  }
  return out;
}

}  // namespace partita
