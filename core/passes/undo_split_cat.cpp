// Replaces a cat of all pieces of a split, in order and along its dimension, by the split's argument,
// and a split of a cat at the cat's seams by the cat's arguments.

#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

bool is_cat(const Node& node) {
  const OpRecord* record = ops().find(node.op());
  return record && record->role == Role::Concatenates;
}

bool is_split(const Node& node) {
  const OpRecord* record = ops().find(node.op());
  return record && record->role == Role::Splits;
}

/// A dimension argument counted from the front; -1 when it is not a constant.
std::int64_t dimension(const Arg& a, const Node& tensor) {
  const auto* d = a.get<std::int64_t>();
  const TensorMeta* meta = tensor.meta.tensor();
  if (!d || !meta) return -1;
  return *d < 0 ? *d + static_cast<std::int64_t>(meta->dim()) : *d;
}

struct Piece {
  Node* split = nullptr;
  std::int64_t index = 0;
};
Piece piece(const Arg& a) {
  Node* n = a.node();
  if (!n || !n->is(Op::getitem()) || !n->args()[0].node() || !is_split(*n->args()[0].node())) return {};
  const auto* index = n->args()[1].get<std::int64_t>();
  return index ? Piece{n->args()[0].node(), *index} : Piece{};
}

/// The tensor that was split, if `node` concatenates the pieces again; else null.
Node* whole(const Node& node) {
  const Args args = bound_arguments(node);
  const auto* items = is_cat(node) && args.size() > 1 ? args[0].get<ArgList>() : nullptr;
  if (!items || items->items.empty()) return nullptr;
  Node* split = piece(items->items[0]).split;
  if (!split) return nullptr;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    const Piece p = piece(items->items[i]);
    if (p.split != split || p.index != static_cast<std::int64_t>(i)) return nullptr;
  }
  Node* source = split->args()[0].node();
  const Args split_args = bound_arguments(*split);
  if (!source || split_args.size() < 3 || dimension(split_args[2], *source) != dimension(args[1], *source))
    return nullptr;
  return source;  // equal sizes, checked later, show that no piece is missing
}

/// The items of the cat that `split` reads, if its pieces are exactly these; else empty.
std::vector<Node*> seams(const Node& split) {
  const Args args = bound_arguments(split);
  const Node* cat = is_split(split) && args.size() > 2 ? args[0].node() : nullptr;
  if (!cat || !is_cat(*cat)) return {};
  const Args cat_args = bound_arguments(*cat);
  const auto* items = cat_args.size() > 1 ? cat_args[0].get<ArgList>() : nullptr;
  const std::int64_t dim = dimension(args[2], *cat);
  if (!items || dim < 0 || dim != dimension(cat_args[1], *cat)) return {};
  std::vector<Node*> out;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    Node* item = items->items[i].node();
    if (!item || !item->meta.tensor() || item->meta.tensor()->dim() <= static_cast<std::size_t>(dim)) return {};
    const SymExpr width = item->meta.tensor()->sizes[static_cast<std::size_t>(dim)];
    Arg wanted = args[1];
    if (const auto* widths = args[1].get<ArgList>()) {
      if (widths->items.size() != items->items.size()) return {};
      wanted = widths->items[i];
    }
    const auto* w = wanted.get<std::int64_t>();
    if (!w || !width.is(*w)) return {};
    out.push_back(item);
  }
  return out;
}

}  // namespace

Result<bool> undo_split_cat(Graph& graph, PassContext& context) {
  bool changed = false;
  Aliases aliases(graph);
  for (Node* node : graph) {
    if (Node* source = whole(*node);
        source && may_stand_for(*source, *node, aliases) && context.may_rewrite("cat of split", *node)) {
      aliases.replace_uses(*node, *source);
      changed = true;
    }
    const std::vector<Node*> items = seams(*node);
    if (items.empty()) continue;
    for (Node* reader : std::vector<Node*>(node->users())) {
      const auto* index = reader->is(Op::getitem()) ? reader->args()[1].get<std::int64_t>() : nullptr;
      if (!index || *index < 0 || static_cast<std::size_t>(*index) >= items.size()) continue;
      Node* item = items[static_cast<std::size_t>(*index)];
      // A piece has the cat's strides, but the item may have other ones.
      if (!may_stand_for(*item, *reader, aliases) || !context.may_rewrite("split of cat", *reader)) continue;
      aliases.replace_uses(*reader, *item);
      changed = true;
    }
  }
  if (changed) graph.eliminate_dead(has_effect);
  return changed;
}

}  // namespace partita
