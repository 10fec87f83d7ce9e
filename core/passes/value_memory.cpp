#include "core/passes/value_memory.h"

#include <algorithm>

#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"

namespace partita {

namespace {

const Node* node_in(const Arg* arg) {
  const Node* found = nullptr;
  if (arg) for_each_node(*arg, [&](Node* n) { found = found ? found : n; });
  return found;
}

/// Is each of the call's results memory of its own, which readers take one by one?
bool has_separate_results(const Node& call) {
  const Schema* schema = call.op()->is_call() ? find_schema(call.op()) : nullptr;
  const OpRecord* record = find_record(call.op());
  if (!schema || schema->returns.size() < 2 || (record && record->views.may_alias)) return false;
  return std::ranges::all_of(schema->returns, [](const SchemaArg& r) { return r.alias_set.empty(); }) &&
         std::ranges::all_of(call.users(), [](const Node* user) { return user->is(Op::getitem()); });
}

const Arg* argument(const Node& node, const Schema& schema, std::size_t i) {
  if (i < node.args().size()) return &node.args()[i];
  return node.kwarg(schema.args[i].name);
}

}  // namespace

Aliases::Aliases(const Graph& graph) {
  for (const Node* node : graph) add(*node);
}

void Aliases::add(const Node& node) {
  const std::size_t size = std::max(root_.size(), node.id() + 1);
  root_.resize(size);
  mutated_.resize(size);
  returned_.resize(size);
  given_.resize(size);
  root_[node.id()] = node.id();
  given_[node.id()] = !node.op()->is_call();
  const std::vector<Node*> inputs = node.inputs();
  const auto share_with = [&](const Node* other) {
    if (other) root_[node.id()] = root(other->id());
  };
  if (node.is_output())
    for (const Node* in : inputs) returned_[root(in->id())] = true;
  if (!node.op()->is_call() || inputs.empty()) return;
  const OpRecord* record = find_record(node.op());
  if (const auto* index = node.is(Op::getitem()) ? node.args()[1].get<std::int64_t>() : nullptr;
      index && has_separate_results(*inputs.front())) {
    root_[node.id()] = root(results_.try_emplace({inputs.front(), *index}, node.id()).first->second);
    return;
  }
  if (node.is(Op::getitem()) || (record && record->views.may_alias)) return share_with(inputs.front());
  const Schema* schema = find_schema(node.op());
  if (!schema) {
    // A control operator may return its arguments; a torch-level call, or a sub graph that writes, may write to them.
    const bool may_write = node.op()->kind != OpKind::Torch || has_effect(node);
    for (const Node* in : inputs)
      if (in->meta.tensor() && may_write) mutated_[root(in->id())] = true;
    if (!node.meta.sym()) share_with(inputs.front());
    return;
  }
  for (std::size_t i = 0; i < schema->args.size(); ++i) {
    const SchemaArg& formal = schema->args[i];
    const Arg* arg = formal.alias_set.empty() ? nullptr : argument(node, *schema, i);
    if (!arg) continue;
    if (formal.is_write) for_each_node(*arg, [&](Node* n) { mutated_[root(n->id())] = true; });
    for (const SchemaArg& result : schema->returns)
      if (!result.alias_set.empty()) share_with(node_in(arg));
  }
}

std::size_t Aliases::root(std::size_t id) const {
  while (root_[id] != id) id = root_[id];
  return id;
}

bool Aliases::may_replace(const Node& node, const Node& replacement) const {
  if (share(node, replacement)) return true;
  if (mutated(node) || mutated(replacement)) return false;
  return !(returned(node) && visible(replacement));
}

void Aliases::replace_uses(Node& node, Node& replacement) {
  node.replace_all_uses_with(&replacement);
  const std::size_t from = root(node.id()), to = root(replacement.id());
  if (from == to) return;
  root_[from] = to;
  mutated_[to] = mutated_[to] || mutated_[from];
  returned_[to] = returned_[to] || returned_[from];
}

bool may_stand_for(const Node& replacement, const Node& node, const Aliases& aliases) {
  const TensorMeta *a = replacement.meta.tensor(), *b = node.meta.tensor();
  if (!a || !b || !a->strides_known || !b->strides_known) return false;
  return a->dtype == b->dtype && a->device == b->device && a->sizes == b->sizes && a->strides == b->strides &&
         aliases.may_replace(node, replacement);
}

Args bound_arguments(const Node& node) {
  const Schema* schema = find_schema(node.op());
  if (!schema) return {};
  auto bound = bind_arguments(*schema, node.args(), node.kwargs());
  return bound ? *std::move(bound) : Args();
}

}  // namespace partita
