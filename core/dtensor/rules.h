#pragma once
// How an operator may be computed on local tensors: which placements of its arguments give which of its results. After
// torch/distributed/tensor/_ops, whose order is kept, because of equal costs the first is chosen.
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/dtensor/placement.h"
#include "core/ops/record/call.h"

namespace partita {

/// A tensor argument, in schema order; those of a list one by one.
struct PlacedArgument {
  TensorMeta whole;
  Placements placements;
};

/// A call on whole tensors, as rules see it. fail() and fail_unsupported() end them.
struct PlacedCall : FakeCall {
  PlacedCall(const Schema& schema, Args bound, ShapeEnv& shapes, const Mesh& mesh)
      : FakeCall(schema, std::move(bound), shapes), mesh(mesh) {}

  const Mesh& mesh;
  std::vector<PlacedArgument> inputs;
  std::vector<std::optional<TensorMeta>> outputs;  ///< nullopt: None

  std::int64_t dim_argument(std::string_view name, std::size_t of) const;  ///< from 0
};

/// One way to compute a call along one mesh dimension: placements of the results, then of the arguments. A result that
/// is None has one that nobody reads.
struct Rule {
  std::vector<Placement> outputs, inputs;
  bool of_shards = false;  ///< counts only where an argument is sharded
};

/// What a call's arguments are brought to, and what its results then are.
struct PlacedPlan {
  std::vector<Placements> inputs, outputs;
};

/// The rules of an operator. Either they are listed for one mesh dimension, and the cheapest of their combinations is
/// taken (choose.h); or the arguments' placements decide.
struct OperatorRules {
  std::vector<Rule> (*list)(const PlacedCall& call) = nullptr;
  PlacedPlan (*decide)(const PlacedCall& call) = nullptr;
  bool uneven = false;  ///< keeps shards of a dimension that is smaller than the mesh
  std::string_view sizes =
      {};  ///< the argument that says the result's sizes, which are the local ones then; empty: none
  /// Builds what is called on the local tensors where that is another call than the operator's. `bound`: its arguments,
  /// local. Null, and a null result: the operator is called.
  Node* (*build)(Builder& build, const PlacedCall& call, const PlacedPlan& plan, const Args& bound) = nullptr;
};
/// Null functions: there are none.
OperatorRules rules_of(const Schema& schema);

// By family: rows of the table.
struct RuleRow {
  std::string_view op;
  OperatorRules rules;
};
const std::vector<RuleRow>& matmul_rules();
const std::vector<RuleRow>& reduction_rules();
const std::vector<RuleRow>& norm_rules();
const std::vector<RuleRow>& view_rules();
const std::vector<RuleRow>& join_rules();
const std::vector<RuleRow>& factory_rules();
std::vector<Rule> pointwise_rules(const PlacedCall& call);

/// The placements with R in place of partial ones and of shards of these dimensions.
Placements replicated(Placements placements, const std::vector<int>& dims, bool partial);

}  // namespace partita
