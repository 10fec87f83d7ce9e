// Composite operators become what the compiler lowers: a record's compile_decompose, else its decompose when it has no
// lowering and no body of its own. Repeats on what comes out, which is placed before the node and so is met again by
// walking on from there.
#include <algorithm>

#include "core/ir/place.h"
#include "core/ops/record.h"
#include "core/passes/pass.h"

namespace partita {
namespace {

bool computes_halves(const Node& node) {
  return std::ranges::any_of(node.inputs(), [](const Node* n) {
    const TensorMeta* t = n->meta.tensor();
    return t && (t->dtype == DType::BFloat16 || t->dtype == DType::Float16);
  });
}

bool is_composite(const Node& node) {
  const OpRecord* record = node.op()->kind == OpKind::Torch ? ops().find(node.op()) : nullptr;
  if (!record || (record->rounds_halves && computes_halves(node))) return false;
  return record->compile_decompose || (record->decompose && !record->lower && !record->pointwise.body && !record->eval);
}

/// The node's readers read `value`: a node, or a tuple of which they take items.
void hand_over(Graph& graph, Node* node, const Arg& value) {
  const auto* tuple = value.get<ArgList>();
  for (Node* user : std::vector<Node*>(node->users())) {
    const auto* index = tuple && user->is(Op::getitem()) ? user->args()[1].get<std::int64_t>() : nullptr;
    if (!index) {
      user->replace_input(node, value);
      continue;
    }
    const Arg& item = tuple->items[static_cast<std::size_t>(*index)];
    for (Node* reader : std::vector<Node*>(user->users())) reader->replace_input(user, item);
    graph.erase(user);
  }
}

}  // namespace

Result<bool> decompose_composites(Graph& graph, PassContext&) {
  bool changed = false;
  for (Node* node = graph.first(); node;) {
    if (!is_composite(*node)) {
      node = node->next();
      continue;
    }
    Node* before = node->previous();
    const std::size_t first_new = graph.id_limit();
    auto value = decompose(*node, true);
    if (!value) return at_node(std::move(value).error(), *node);
    hand_over(graph, node, *value);
    const std::string name = node->name();
    Node* result = value->node();
    graph.erase(node);
    if (result && result->id() >= first_new) graph.rename(result, name);
    changed = true;
    node = before ? before->next() : graph.first();
  }
  return changed;
}

}  // namespace partita
