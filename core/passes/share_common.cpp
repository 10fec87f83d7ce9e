// Replaces equal computations by one node. Keys hold the operator and the arguments after earlier merges, so one walk
// in order is enough.
#include <unordered_map>

#include "core/ir/print.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

std::string key_of(const Node& node) {
  std::string key = node.op()->name;
  key += node.target;
  for (const Arg& a : node.args()) key += "|" + print(a);
  for (const auto& [name, a] : node.kwargs()) key += "|" + name + "=" + print(a);
  return key;
}

bool is_shareable(const Node& node) {
  if (node.is(Op::get_attr())) return !node.graph().child(node.target);
  return node.op()->is_call() && !has_effect(node);
}

/// Can the call give memory of its own although its schema says that of an argument, as x.to(dtype) and reshape do?
bool may_copy(const Node& node) {
  const OpRecord* record = find_record(node.op());
  return !record || record->decompose || record->views.may_alias;
}

}  // namespace

Result<bool> share_common(Graph& graph, PassContext& context) {
  bool changed = false;
  Aliases aliases(graph);
  std::unordered_map<std::string, Node*> seen;
  for (Node* node : graph) {
    // Calls of two regions are differentiated, or cast, in two ways.
    if (node->is(set_grad_enabled()) || is_autocast(node->op())) seen.clear();
    if (!is_shareable(*node)) continue;
    const auto [it, is_new] = seen.emplace(key_of(*node), node);
    if (is_new) continue;
    Node* first = it->second;
    // If what they read is written in between, they are not equal.
    bool reads_mutated = false;
    for (const Node* in : node->inputs()) reads_mutated |= aliases.mutated(*in);
    // Where a file's annotations differ, one of them is wrong; later stages say so.
    if (reads_mutated || !aliases.may_replace(*node, *first) || !same_annotation(node->meta, first->meta)) continue;
    // Two results that the caller sees have a memory each, if they are copies.
    if (aliases.share(*node, *first) && may_copy(*node) && aliases.returned(*node)) continue;
    if (!context.may_rewrite("equal", *node)) continue;
    aliases.replace_uses(*node, *first);
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace partita
