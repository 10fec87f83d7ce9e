// Prepares a joint graph and its pins, and partitions it: where the forward ends in the text, by min cut, or within a
// memory budget, for which bans on recomputing are lifted by bisection.
#include "core/partition/partition.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "core/functionalize/functional_rng.h"
#include "core/ir/graph.h"
#include "core/ir/print.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"
#include "core/partition/cost.h"
#include "core/partition/extract.h"
#include "core/partition/min_cut.h"
#include "core/sym/float_symbol.h"

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

/// Merges calls of one operator with equal arguments: the first is kept, and the users of the others use it. Not merged
/// are random calls, aten.empty, mutable calls, calls between which memory is written, unbacked numbers, and values
/// whose memory the graph returns (eager PyTorch returns separate memory). Returns the number of calls removed.
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

/// A joint graph prepared for partitioning.
struct Problem {
  std::unique_ptr<Graph> joint;
  JointParts parts;
  Pins pins;
  std::size_t merged = 0;
};

Diagnostic bad_pin(const Graph& joint, const std::string& name, std::string_view why) {
  return input_error("partition.pin", fmt::format("cannot pin {}: {}", name, why), {.graph = joint.name, .node = name});
}

/// A pin to recompute a getitem applies to its tuple, because the call computes all results.
Status read_pins(Problem& p, const PartitionOptions& options) {
  p.pins.save.assign(p.joint->id_limit(), 0);
  p.pins.recompute.assign(p.joint->id_limit(), 0);
  for (const std::string& name : options.save) {
    Node* n = p.joint->find(name);
    if (!n) return bad_pin(*p.joint, name, "the joint graph has no such node");
    if (p.parts.on_tangents[n->id()]) return bad_pin(*p.joint, name, "it belongs to the backward");
    if (!n->meta.tensor() && !n->meta.sym()) return bad_pin(*p.joint, name, "it is a tuple; pin its getitems");
    p.pins.save[n->id()] = 1;
  }
  for (const std::string& name : options.recompute) {
    Node* n = p.joint->find(name);
    if (!n) return bad_pin(*p.joint, name, "the joint graph has no such node");
    if (p.parts.on_tangents[n->id()]) return bad_pin(*p.joint, name, "it belongs to the backward");
    while (n->is(Op::getitem()) && n->args()[0].node()) n = n->args()[0].node();
    if (n->is_placeholder()) return bad_pin(*p.joint, name, "an input cannot be recomputed");
    if (cost_class(*n).random) return bad_pin(*p.joint, name, "a random operator would give other values");
    if (cost_class(*n).side_effect) return bad_pin(*p.joint, name, "an operator with an effect runs once");
    if (p.pins.save[n->id()]) return bad_pin(*p.joint, name, "it is pinned to be saved and to be recomputed");
    p.pins.recompute[n->id()] = 1;
  }
  return {};
}

Result<Problem> prepare(const Graph& joint, const PartitionOptions& options, bool merge) {
  if (!is_joint(joint))
    return input_error("partition.joint",
                       fmt::format("graph {} is not a joint graph: its inputs are not primals_1, ... followed by "
                                   "tangents_1, ..., or its first outputs depend on tangents",
                                   joint.name),
                       {.graph = joint.name});
  Problem p;
  p.joint = joint.clone();
  p.joint->eliminate_dead([](const Node& n) { return cost_class(n).side_effect; });
  if (merge) p.merged = merge_common_subexpressions(*p.joint);
  TRY(p.parts, find_joint_parts(*p.joint, options.forward_outputs));
  TRY_DO(read_pins(p, options));
  return p;
}

/// Marks the forward's part of the text, which ends before the first node that depends on a tangent. Calls directly
/// before that node belong to the backward if only the backward reads them.
std::vector<char> written_as_forward(const Problem& p) {
  std::vector<Node*> prefix;
  for (Node* n : *p.joint) {
    if (n->is_placeholder() && !is_backward_input(*n)) prefix.push_back(n);
    if (n->is_placeholder()) continue;
    if (p.parts.on_tangents[n->id()] || n->is_output()) break;
    prefix.push_back(n);
  }
  std::vector<char> forward(p.joint->id_limit(), 0);
  for (Node* n : prefix) forward[n->id()] = 1;
  // Autograd saves a result by detaching it directly after the call; getitems follow their tuple directly.
  auto kept_by_forward = [&](Node* n) {
    if (p.parts.forward(n)) return true;
    const OpRecord* record = ops().find(n->op());
    bool part = n->is(Op::getitem());
    Node* from =
        (part || (record && record->role == Role::WholeView)) && !n->args().empty() ? n->args()[0].node() : nullptr;
    return from && p.parts.forward(from);
  };
  for (auto it = prefix.rbegin(); it != prefix.rend() && !kept_by_forward(*it); ++it) forward[(*it)->id()] = 0;
  return forward;
}

Result<Partition> default_partition(const Problem& p) {
  std::vector<char> forward = written_as_forward(p);
  std::vector<Node*> saved;
  std::vector<char> taken(p.joint->id_limit(), 0);
  auto take = [&](Node* n) {
    if (!taken[n->id()]) saved.push_back(n);
    taken[n->id()] = 1;
  };
  auto recomputed = [&](const Node* n) {
    return p.pins.recompute[n->id()] || (!p.pins.save[n->id()] && tagged_recompute(*n));
  };
  for (Node* n : *p.joint) {
    if (!forward[n->id()]) continue;
    if (n->meta.sym()) {
      take(n);
      continue;
    }
    if (is_opaque(*n)) take(n);
    if (recomputed(n) || !n->meta.tensor()) continue;
    std::vector<Node*> later;
    for (Node* user : n->users())
      if ((!forward[user->id()] || recomputed(user)) && !user->is_output()) later.push_back(user);
    bool returned = p.parts.returned_gradient[n->id()];
    // The backward needs only its sizes, so save those.
    if (!returned && std::all_of(later.begin(), later.end(), [](Node* u) { return u->meta.sym() != nullptr; }))
      for (Node* u : later) take(u);
    else
      take(n);
  }
  std::vector<const char*> why;
  for (Node* n : saved)
    why.push_back(n->is_placeholder() ? "input" : p.pins.save[n->id()] ? "pinned: save" : "read by the backward");
  return extract(*p.joint, p.parts, saved, why, false);
}

/// A flag of torch._functorch.config.
bool functorch_flag(const PartitionOptions& options, const char* name, bool usual) {
  if (!options.functorch) return usual;
  const auto it = options.functorch->find(name);
  return it == options.functorch->end() ? usual : it->second != 0;
}

CutOptions aggressive(CutOptions o) {
  o.ban_used_far_apart = o.ban_long_fusible_chains = o.ban_materialized_backward = o.ban_not_recomputable = false;
  return o;
}

/// What the partitioner that compiled the graph banned; all of it where that is not known.
CutOptions usual_cut(const PartitionOptions& options) {
  const CutOptions o = {
      .ban_used_far_apart = functorch_flag(options, "ban_recompute_used_far_apart", true),
      .ban_long_fusible_chains = functorch_flag(options, "ban_recompute_long_fusible_chains", true),
      .ban_materialized_backward = functorch_flag(options, "ban_recompute_materialized_backward", true),
      .ban_not_recomputable = functorch_flag(options, "ban_recompute_not_in_allowlist", true),
      .ban_reductions = functorch_flag(options, "ban_recompute_reductions", true)};
  return functorch_flag(options, "aggressive_recomputation", false) ? aggressive(o) : o;
}

Result<Partition> cut_partition(const Problem& p, const CutOptions& options, const std::vector<char>& allowed) {
  TRY(MinCut cut, min_cut(*p.joint, p.parts, options, p.pins, allowed));
  return extract(*p.joint, p.parts, cut.saved, cut.why, true);
}

/// Finds a partition between saving nothing and the usual one. Lifts bans on the values that free the most bytes per
/// arithmetic operation, as few as the budget needs.
Result<Partition> budget_partition(const Problem& p, const CutOptions& bans, double budget) {
  TRY(Partition usual, cut_partition(p, bans, {}));
  std::vector<char> all(p.joint->id_limit(), 1);
  CutOptions least = aggressive(bans);
  least.ban_reductions = false;
  TRY(Partition smallest, cut_partition(p, least, all));
  if (budget <= 0) return smallest;
  auto spread = static_cast<double>(usual.activation_bytes - smallest.activation_bytes);
  auto limit = smallest.activation_bytes + static_cast<std::int64_t>(spread * budget);
  if (usual.activation_bytes <= limit) return usual;
  TRY(MinCut cut, min_cut(*p.joint, p.parts, aggressive(bans), p.pins, {}));
  TRY(Partition cheap, extract(*p.joint, p.parts, cut.saved, cut.why, true));
  if (cheap.activation_bytes <= limit) return cheap;

  std::vector<Node*> candidates = cut.banned;
  auto rate = [](Node* n) {
    return static_cast<double>(operations_of(*n) + 1) / static_cast<double>(bytes_of(*n) + 1);
  };
  std::stable_sort(candidates.begin(), candidates.end(), [&](Node* a, Node* b) { return rate(a) < rate(b); });
  auto operations = [&](const Partition& cut) { return estimate(*p.joint, cut.recomputed_operations); };
  // Bytes almost always fall as more bans are lifted, so bisect for the fewest.
  std::size_t low = 0, high = candidates.size();
  Partition best = std::move(smallest);
  while (low < high) {
    std::size_t middle = low + (high - low) / 2;
    std::vector<char> allowed(p.joint->id_limit(), 0);
    for (std::size_t i = 0; i <= middle; ++i) allowed[candidates[i]->id()] = 1;
    TRY(Partition attempt, cut_partition(p, aggressive(bans), allowed));
    if (attempt.activation_bytes <= limit) {
      if (operations(attempt) <= operations(best)) best = std::move(attempt);
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return best;
}

Result<Partition> solve(const Problem& p, const PartitionOptions& options) {
  bool has_backward = false;
  for (Node* n : *p.joint) has_backward |= !n->is_output() && p.parts.backward(n);
  if (options.partitioner == Partitioner::Default || !has_backward) return default_partition(p);
  const double budget = memory_budget_of(options);
  const CutOptions bans = usual_cut(options);
  TRY(Partition made, budget < 1 ? budget_partition(p, bans, budget) : cut_partition(p, bans, {}));
  made.memory_budget = budget;
  return made;
}

Status check_budget(const PartitionOptions& options) {
  const double budget = options.memory_budget.value_or(1);
  if (budget >= 0 && budget <= 1) return {};
  return input_error("partition.budget", fmt::format("The valid ranges for memory budget are 0 <= m <= 1. The provided "
                                                     "value is {}",
                                                     budget));
}

}  // namespace

bool is_joint(const Graph& graph) {
  if (graph.form == GraphForm::Joint) return true;
  // In flat text (to_folder, GraphModule.code) a backward has tangents too. It lacks some primals, and its outputs are
  // gradients from the first one on.
  std::size_t primals = 0, tangents = 0;
  for (const Node* n : graph.placeholders()) {
    const bool named = (tangents > 0 && (is_forward_seed(*n) || is_backward_seed(*n))) ||
                       (is_tangent(*n) ? n->name() == fmt::format("tangents_{}", ++tangents)
                                       : tangents == 0 && n->name() == fmt::format("primals_{}", ++primals));
    if (!named) return false;
  }
  if (tangents == 0 || graph.outputs().size() < primals + tangents) return false;
  const auto parts = find_joint_parts(graph, {});
  return parts || parts.error().code == "partition.outputs";
}

std::optional<double> given_memory_budget() {
  const auto row = find_config_row("memory_budget");
  return row && (*row)->given(config()) ? std::optional(config().memory_budget) : std::nullopt;
}

double memory_budget_of(const PartitionOptions& options) {
  if (options.memory_budget) return *options.memory_budget;
  if (options.functorch)
    if (const auto it = options.functorch->find("activation_memory_budget");
        it != options.functorch->end() && it->second >= 0 && it->second <= 1)
      return it->second;
  return config().memory_budget;
}

Partitioner configured_partitioner() {
  return config().partitioner == "default" ? Partitioner::Default : Partitioner::MinCut;
}

Result<Partition> partition(const Graph& joint, const PartitionOptions& options) {
  TRY_DO(check_budget(options));
  TRY(Problem p, prepare(joint, options, options.partitioner == Partitioner::MinCut));
  return solve(p, options);
}

Result<std::vector<BudgetPoint>> budget_curve(const Graph& joint, const PartitionOptions& options, int points,
                                              const Progress* progress) {
  TRY(Problem p, prepare(joint, options, true));
  std::vector<BudgetPoint> curve;
  for (int i = 0; i < points; ++i) {
    TRY_DO(step(progress, static_cast<double>(i) / points, "memory budgets"));
    PartitionOptions at = options;
    at.memory_budget = points > 1 ? static_cast<double>(i) / (points - 1) : 1;
    TRY(Partition result, solve(p, at));
    curve.push_back({*at.memory_budget, result.activation_bytes, result.recomputed_operations});
  }
  return curve;
}

}  // namespace partita
