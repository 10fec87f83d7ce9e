#include "core/ops/facts/requires_grad.h"

#include <algorithm>

#include "core/ops/record/record.h"

namespace partita {
namespace {

bool differentiable(const Op* op) {
  if (op->kind != OpKind::Torch) return true;
  const OpRecord* record = find_record(op);
  return !record || !record->autograd.not_differentiable;
}

/// All results of a list are differentiable. Of other tuples only the first is, unless the record says otherwise.
/// A negative index counts from the end.
bool result_differentiable(const Node& tuple, std::int64_t index) {
  const OpRecord* record = find_record(tuple.op());
  if (record && index < 0) index += std::ssize(record->schema->returns);
  if (index < 0) return true;
  if (record && index < 32 && (record->autograd.constant_results >> index & 1U) != 0) return false;
  if (!record || index == 0 || record->autograd.all_results_differentiable) return true;
  if (!record->schema->returns.empty() && record->schema->returns[0].is_list) return true;
  for (const Derivative& d : record->autograd.derivative)
    if (d.formula.find("grads") != std::string_view::npos) return true;
  return false;
}

}  // namespace

bool can_require_grad(const Meta& meta) {
  if (auto* t = meta.tensor()) return is_floating(t->dtype) || is_complex(t->dtype);
  if (auto* tuple = meta.tuple()) {
    for (const Meta& item : tuple->items)
      if (can_require_grad(item)) return true;
    return false;
  }
  return !meta.known();
}

bool call_requires_grad(const Node& call, const std::function<bool(const Node*)>& needs) {
  bool any = false;
  for (const Node* input : call.inputs()) any |= needs(input);
  if (call.is(Op::getitem())) {
    auto* index = call.args()[1].get<std::int64_t>();
    Node* tuple = call.args()[0].node();
    if (tuple && index && !result_differentiable(*tuple, *index)) any = false;
  }
  return any && differentiable(call.op()) && can_require_grad(call.meta);
}

std::vector<char> requires_grad(const Graph& graph, const std::vector<bool>& placeholders,
                                const std::unordered_set<const Node*>& no_grad, const HiddenWrites& hidden) {
  std::vector<char> needs(graph.id_limit(), 0);
  std::size_t position = 0;
  for (Node* n : graph) {
    if (n->is_placeholder()) {
      needs[n->id()] = position < placeholders.size() && placeholders[position] && can_require_grad(n->meta);
      ++position;
    } else if (const auto it = hidden.find(n); it != hidden.end()) {
      needs[n->id()] = needs[it->second->id()];
    } else if (n->op()->is_call()) {
      needs[n->id()] =
          !no_grad.contains(n) && call_requires_grad(*n, [&](const Node* input) { return needs[input->id()] != 0; });
    }
  }
  return needs;
}

bool requires_grad(const Node* node) {
  const TensorMeta* t = node->meta.tensor();
  if (t) return t->requires_grad;
  const MetaTuple* tuple = node->meta.tuple();
  return tuple &&
         std::ranges::any_of(tuple->items, [](const Meta& m) { return m.tensor() && m.tensor()->requires_grad; });
}

void set_requires_grad(Node& node, bool needs) {
  if (TensorMeta* t = node.meta.tensor()) t->requires_grad = needs;
  if (auto* tuple = std::get_if<MetaTuple>(&node.meta.v))
    for (Meta& item : tuple->items)
      if (TensorMeta* t = item.tensor()) t->requires_grad = needs;
}

bool call_requires_grad(const Node& call) {
  return call_requires_grad(call, [](const Node* input) { return requires_grad(input); });
}

void spread_requires_grad(Graph& graph) {
  for (Node* n : graph)
    if (n->op()->is_call() && call_requires_grad(*n)) set_requires_grad(*n, true);
}

}  // namespace partita
