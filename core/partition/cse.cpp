#include "core/partition/cse.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "core/ir/print.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"
#include "core/sym/unbacked.h"

namespace partita {
namespace {

bool may_merge(const Node& node) {
  if (!node.op()->is_call()) return false;
  if (const SymExpr* e = node.meta.sym())
    for (const std::string& s : e->symbols())
      if (is_unbacked(s)) return false;
  if (node.op()->kind != OpKind::Torch) return true;
  const Schema* schema = find_schema(node.op());
  if (!schema || schema->is_mutable || draws(node.op()) || is_collective(node.op())) return false;
  const OpRecord* record = find_record(node.op());
  return !record || !(record->side_effect || record->role == Role::Uninitialised);
}

bool writes(const Node& node) {
  const Schema* schema = node.op()->kind == OpKind::Torch ? find_schema(node.op()) : nullptr;
  return schema && schema->is_mutable;
}

/// Appends the argument, so that different ones have different texts. What most arguments are needs no string of its
/// own: this runs for each call of a joint graph.
void append(std::string& key, const Arg& a) {
  if (const Node* n = a.node()) {
    key += n->name();
  } else if (const auto* i = a.get<std::int64_t>()) {
    fmt::format_to(std::back_inserter(key), "{}", *i);
  } else if (const auto* list = a.get<ArgList>()) {
    key += list->is_tuple ? '(' : '[';
    for (const Arg& item : list->items) append(key, item), key += ',';
    key += ']';
  } else {
    key += print(a);
  }
}

}  // namespace

std::size_t merge_common_subexpressions(Graph& graph) {
  std::unordered_set<const Node*> returned;
  for (const Arg& a : graph.outputs()) for_each_node(a, [&](Node* n) { returned.insert(memory_owner(n)); });

  std::unordered_map<std::string, Node*> first;
  first.reserve(graph.size());
  std::size_t merged = 0;
  int writes_so_far = 0;
  for (Node* node : graph) {
    if (writes(*node)) ++writes_so_far;
    if (!may_merge(*node) || returned.contains(memory_owner(node))) continue;
    std::string key = std::to_string(writes_so_far) + ' ' + node->op()->name;
    for (const Arg& a : node->args()) append(key += ' ', a);
    for (const auto& [name, a] : node->kwargs()) append(((key += ' ') += name) += '=', a);
    auto [it, fresh] = first.emplace(std::move(key), node);
    if (fresh) continue;
    node->replace_all_uses_with(it->second);
    graph.erase(node);
    ++merged;
  }
  return merged;
}

}  // namespace partita
