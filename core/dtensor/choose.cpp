// Which placements PyTorch would choose for an operator's arguments: the same rules, costs and order.
#include "core/dtensor/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace partita {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

std::vector<std::size_t> sharding(const Placements& placements, std::size_t before, int dim) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < before; ++i)
    if (placements[i].is_shard(dim)) out.push_back(i);
  return out;
}

/// As between the GPUs of one host.
struct Link {
  static constexpr double start = 6.6, hop = 0.6, gigabytes_per_second = 87.7;
  static double microseconds(double gigabytes, double hops, double ranks) {
    return start + hops * hop + gigabytes * hops / ranks / gigabytes_per_second * 1e6;
  }
};

double step_cost(const RedistributeStep& step, double ranks, double& gigabytes) {
  if (step.from == step.to) return 0;
  if (step.from.is_shard() && step.to.is_replicate()) {
    gigabytes *= ranks;
    return Link::microseconds(gigabytes, ranks - 1, ranks);
  }
  if (step.from.is_shard() && step.to.is_shard()) return Link::microseconds(gigabytes, ranks - 1, ranks) + 1;
  if (step.from.is_partial() && step.to.is_replicate()) return Link::microseconds(gigabytes, 2 * (ranks - 1), ranks);
  if (step.from.is_partial() && step.to.is_shard()) {
    const double cost = Link::microseconds(gigabytes, ranks - 1, ranks);
    gigabytes /= ranks;
    return cost;
  }
  if (step.to.is_partial() && !step.from.is_replicate()) return infinite;
  if (step.to.is_shard()) gigabytes /= ranks;
  return 0;
}

/// Does each rank get a part of every sharded dimension?
bool is_shardable(const TensorMeta& whole, const Placements& placements, const Mesh& mesh) {
  Sizes parts(whole.dim(), 1);
  for (std::size_t i = 0; i < placements.size(); ++i) {
    if (!placements[i].is_shard()) continue;
    const auto d = static_cast<std::size_t>(placements[i].dim);
    if (d >= whole.dim()) return false;
    parts[d] *= mesh.sizes[i];
    if (whole.sizes[d].as_int() < parts[d] * placements[i].pieces) return false;
  }
  return true;
}

/// Reductions of different kinds do not commute, but for sums and averages.
bool mixes_reductions(const Placements& placements) {
  std::set<std::string> kinds;
  for (const Placement& p : placements)
    if (p.is_partial()) kinds.insert(p.reduce);
  return kinds.size() > 1 && kinds != std::set<std::string>{"avg", "sum"};
}

/// The combination in which mesh dimension i has the rule picked[i]; nullopt: it cannot be.
std::optional<PlacedPlan> combined(const PlacedCall& call, const std::vector<Rule>& rules,
                                   const std::vector<std::size_t>& picked, bool uneven) {
  PlacedPlan out;
  out.inputs.resize(call.inputs.size());
  out.outputs.resize(rules[0].outputs.size());
  for (const std::size_t r : picked) {
    for (std::size_t k = 0; k < out.inputs.size(); ++k) out.inputs[k].push_back(rules[r].inputs[k]);
    for (std::size_t k = 0; k < out.outputs.size(); ++k) out.outputs[k].push_back(rules[r].outputs[k]);
  }
  for (const auto* list : {&out.inputs, &out.outputs})
    if (std::ranges::any_of(*list, mixes_reductions)) return std::nullopt;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    const PlacedArgument& input = call.inputs[k];
    const bool kept = uneven && input.placements == out.inputs[k];
    if (!kept && !is_shardable(input.whole, out.inputs[k], call.mesh)) return std::nullopt;
  }
  return out;
}

std::vector<PlacedPlan> combinations(const PlacedCall& call, const std::vector<Rule>& rules, bool uneven) {
  std::vector<PlacedPlan> out;
  std::vector<std::size_t> picked(call.mesh.dims(), 0);
  while (true) {
    if (auto one = combined(call, rules, picked, uneven)) out.push_back(*std::move(one));
    std::size_t i = picked.size();
    while (i > 0 && ++picked[i - 1] == rules.size()) picked[--i] = 0;
    if (i == 0) return out;
  }
}

bool leaves_arguments(const PlacedCall& call, const PlacedPlan& plan) {
  return std::ranges::equal(call.inputs, plan.inputs, {}, &PlacedArgument::placements);
}

double cost_of(const PlacedCall& call, const PlacedPlan& plan) {
  double cost = 0;
  for (std::size_t k = 0; k < call.inputs.size(); ++k)
    cost += redistribute_cost(call.inputs[k].whole, call.inputs[k].placements, plan.inputs[k], call.mesh);
  return cost;
}

/// The pieces of the shards among the arguments, each kind once.
std::vector<std::int64_t> kinds_of_shards(const PlacedCall& call) {
  std::vector<std::int64_t> kinds;
  for (const PlacedArgument& input : call.inputs)
    for (const Placement& p : input.placements)
      if (p.is_shard() && std::ranges::find(kinds, p.pieces) == kinds.end()) kinds.push_back(p.pieces);
  return kinds;
}

Rule with_pieces(Rule rule, std::int64_t pieces) {
  for (auto* list : {&rule.outputs, &rule.inputs})
    for (Placement& p : *list)
      if (p.is_shard()) p.pieces = pieces;
  return rule;
}

}  // namespace

std::vector<RedistributeStep> redistribute_steps(const Sizes& whole, const Placements& from, const Placements& to,
                                                 const Mesh& mesh) {
  std::vector<RedistributeStep> steps;
  const std::size_t dims = mesh.dims();
  if (dims == 1) {
    if (from[0] != to[0]) steps.push_back({0, from[0], to[0], whole});
    return steps;
  }
  std::vector<Sizes> logical = {whole};
  for (std::size_t i = 0; i + 1 < dims; ++i) {
    logical.push_back(logical[i]);
    if (!from[i].is_shard()) continue;
    std::int64_t& size = logical.back()[static_cast<std::size_t>(from[i].dim)];
    size = part_of(size, mesh.sizes[i], mesh.coordinate(i)).size;
  }
  Placements now = from;
  const auto go = [&](std::size_t i, const Placement& target) {
    if (now[i] == target) return;
    steps.push_back({i, now[i], target, logical[i]});
    now[i] = target;
  };
  // From the innermost on. Shards within others that change are given up first.
  if (std::ranges::any_of(from, [](const Placement& p) { return p.is_shard(); }))
    for (std::size_t i = dims; i-- > 0;) {
      const bool misaligned = to[i].is_shard() && sharding(now, i, to[i].dim) != sharding(to, i, to[i].dim);
      go(i, misaligned ? Placement() : to[i]);
    }
  for (std::size_t i = 0; i < dims; ++i) go(i, to[i]);
  return steps;
}

double redistribute_cost(const TensorMeta& whole, const Placements& from, const Placements& to, const Mesh& mesh) {
  if (from == to || std::ranges::all_of(from, [](const Placement& p) { return p.is_replicate(); })) return 0;
  const Sizes sizes = plain_sizes(whole);
  double gigabytes = static_cast<double>(itemsize(whole.dtype));
  for (const std::int64_t n : sizes) gigabytes *= static_cast<double>(n);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].is_shard()) gigabytes /= static_cast<double>(mesh.sizes[i]);
  gigabytes /= 1024.0 * 1024 * 1024;
  double cost = 0;
  for (const RedistributeStep& step : redistribute_steps(sizes, from, to, mesh))
    cost += step_cost(step, static_cast<double>(mesh.sizes[step.mesh_dim]), gigabytes);
  return cost;
}

Result<PlacedPlan> cheapest(const PlacedCall& call, const std::vector<PlacedPlan>& plans) {
  const PlacedPlan *best = nullptr, *free = nullptr, *kept = nullptr;
  double least = infinite;
  for (const PlacedPlan& plan : plans) {
    const double cost = cost_of(call, plan);
    if (cost < least) best = &plan, least = cost;
    if (cost != 0) continue;
    if (leaves_arguments(call, plan))
      kept = &plan;
    else if (!free)
      free = &plan;
  }
  const PlacedPlan* chosen = kept ? kept : free ? free : best;
  if (!chosen) return unsupported("dtensor.placement", "no rule fits the placements of the arguments");
  return *chosen;
}

Result<PlacedPlan> choose(const PlacedCall& call, const std::vector<Rule>& listed, bool uneven) {
  const std::vector<std::int64_t> kinds = kinds_of_shards(call);
  std::vector<Rule> rules;
  for (const Rule& rule : listed) {
    if (!rule.of_shards) rules.push_back(rule);
    for (std::size_t k = 0; rule.of_shards && k < kinds.size(); ++k) rules.push_back(with_pieces(rule, kinds[k]));
  }
  const std::size_t outputs = std::max<std::size_t>(call.outputs.size(), rules.empty() ? 1 : rules[0].outputs.size());
  rules.insert(rules.begin(), Rule{std::vector<Placement>(outputs), std::vector<Placement>(call.inputs.size())});
  constexpr std::size_t most = 1 << 16;
  if (std::pow(static_cast<double>(rules.size()), static_cast<double>(call.mesh.dims())) > most)
    return unsupported("dtensor.placement", "a mesh of too many dimensions");
  TRY(PlacedPlan chosen, cheapest(call, combinations(call, rules, uneven)));
  if (!leaves_arguments(call, chosen) && std::ranges::any_of(kinds, [](std::int64_t pieces) { return pieces != 1; }))
    return unsupported("dtensor.placement", "shards in pieces (_StridedShard) that are placed differently");
  return chosen;
}

}  // namespace partita
