#include "app/tasks/profile_costs.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/ops/facts/family.h"
#include "core/ops/facts/shared_memory.h"
#include "core/partition/cost.h"

namespace partita {
namespace {

using Nodes = std::set<const Node*>;

/// What a kernel computes; a result of several belongs to the call that gives it.
const Node* call_of(const Node* node) {
  return node->is(Op::getitem()) && !node->inputs().empty() ? node->inputs()[0] : node;
}

/// Bytes that a kernel reads, by whose memory.
std::map<const Node*, double> reads_of(const Nodes& kernel) {
  std::map<const Node*, double> reads;
  for (const Node* node : kernel) {
    if (is_view(*node) || !node->op()->is_call()) continue;
    const std::vector<Node*> inputs = node->inputs();
    for (const Node* input : inputs) {
      const Node* memory = memory_of(input);
      if (kernel.contains(call_of(memory))) continue;
      double bytes = static_cast<double>(std::min(bytes_of(*input), bytes_of(*memory)));
      if (input == inputs.front() && family_of(node->op()) == Family::Index)
        bytes = std::min(bytes, static_cast<double>(bytes_of(*node)));
      double& known = reads[memory];
      known = std::max(known, bytes);
    }
  }
  return reads;
}

}  // namespace

std::vector<std::optional<CallCost>> call_costs(const Graph& graph,
                                                const std::vector<std::vector<std::string>>& kernels) {
  std::vector<Nodes> nodes(kernels.size());
  std::unordered_map<const Node*, std::size_t> first;  // kernel that has a node
  for (std::size_t k = 0; k < kernels.size(); ++k)
    for (const std::string& name : kernels[k])
      if (const Node* node = graph.find(name)) {
        nodes[k].insert(call_of(node));
        first.try_emplace(call_of(node), k);
      }
  std::vector<std::optional<CallCost>> costs(kernels.size());
  Nodes written;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (nodes[k].empty()) continue;
    CallCost& cost = costs[k].emplace();
    for (const Node* node : nodes[k]) cost.operations += static_cast<double>(operations_of(*node));
    for (const auto& [memory, bytes] : reads_of(nodes[k])) {
      cost.bytes += bytes;
      written.insert(memory);
    }
  }
  if (const Node* output = graph.output())
    for (const Node* value : output->inputs()) written.insert(memory_of(value));
  for (const Node* value : written)
    if (const auto by = first.find(call_of(value)); by != first.end())
      costs[by->second]->bytes += static_cast<double>(bytes_of(*value));
  return costs;
}

}  // namespace partita
