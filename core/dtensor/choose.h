#pragma once
#include <vector>

#include "core/base/result.h"
#include "core/dtensor/rules.h"
#include "core/ops/record/call.h"

namespace partita {

/// One step by which a tensor comes to other placements: along one mesh dimension, of a tensor that has the sizes
/// `logical` on its ranks together.
struct RedistributeStep {
  std::size_t mesh_dim = 0;
  Placement from, to;
  Sizes logical;
};
/// The steps of _redistribute.py (generate_greedy_transform_infos), where shards lie in the order of mesh dimensions.
std::vector<RedistributeStep> redistribute_steps(const Sizes& whole, const Placements& from, const Placements& to,
                                                 const Mesh& mesh);

/// What PyTorch takes communication to cost, in microseconds (_collective_utils.py); infinite where it has no way.
double redistribute_cost(const TensorMeta& whole, const Placements& from, const Placements& to, const Mesh& mesh);

/// The cheapest of these ways; of equal ones the first, but one that leaves all arguments as they are before others
/// (_sharding_prop.py). Error dtensor.placement: there is none.
Result<PlacedPlan> cheapest(const PlacedCall& call, const std::vector<PlacedPlan>& plans);

/// The cheapest combination of rules, one for each mesh dimension, where that of replicated values comes first. Of
/// equal ones the first, but one that leaves all arguments as they are before others (_sharding_prop.py). Error
/// dtensor.placement: none fits.
Result<PlacedPlan> choose(const PlacedCall& call, const std::vector<Rule>& listed, bool uneven);

/// Calls that bring a rank's tensor to other placements, with the collectives of PyTorch. `whole`: the meta of the
/// whole tensor. fail_unsupported() where there is no way.
Node* redistribute(Builder& build, Node* local, const TensorMeta& whole, const Placements& from, const Placements& to,
                   const Mesh& mesh);

}  // namespace partita
