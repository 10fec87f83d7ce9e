// Replaces composite operators by what the compiler lowers: their compile_decompose, else their decompose if the record
// has no lowering, body or evaluation. New calls are placed before the node, so the walk visits and decomposes them
// too.
#include <algorithm>

#include "core/ir/place.h"
#include "core/ops/layout.h"
#include "core/ops/record.h"
#include "core/ops/schema.h"
#include "core/passes/pass.h"
#include "core/tensor/significant_strides.h"

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

/// Precondition: equal sizes.
bool same_layout(const TensorMeta& a, const TensorMeta& b) {
  if (!a.strides_known || !b.strides_known || a.strides.size() != b.strides.size()) return true;
  return same_significant_strides(a.sizes, a.strides, b.strides);
}

/// Copies `value` if its strides differ from the promised ones. The views in a decomposition may give other strides
/// than the operator does.
Arg laid_out(Builder& build, const Arg& value, const Meta& promised) {
  const TensorMeta* wanted = promised.tensor();
  const TensorMeta* found = value.node() ? value.node()->meta.tensor() : nullptr;
  if (!wanted || !found || wanted->sizes != found->sizes || same_layout(*wanted, *found)) return value;
  for (MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
    if (strides_for(format, wanted->sizes) == wanted->strides)
      return build.call("aten.clone.default", {value}, {{"memory_format", format}});
  return value;
}

/// Makes the node's readers read `value`, or, through getitem, the items of a tuple.
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
    if (!find_schema(node->op())->is_view) {
      Builder build(graph, node, node->origin);
      *value = laid_out(build, *value, node->meta);
    }
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
