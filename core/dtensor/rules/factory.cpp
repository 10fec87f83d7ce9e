// Copies and casts, and tensors that are made like others (_tensor_ops.py).
#include <algorithm>

#include "core/dtensor/rules.h"

namespace partita {
namespace {

PlacedPlan as_input(const PlacedCall& c) {
  const Placements& own = c.inputs.at(0).placements;
  return {{own}, {own}};
}

/// What does not depend on the argument's values is whole on each rank where these are partial.
PlacedPlan like_input(const PlacedCall& c) {
  const Placements& own = c.inputs.at(0).placements;
  return {{own}, {replicated(own, {}, true)}};
}

PlacedPlan new_like(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(0);
  const bool sharded = std::ranges::any_of(input.placements, [](const Placement& p) { return p.is_shard(); });
  const bool follows = sharded && c.outputs.at(0) && c.outputs[0]->sizes == input.whole.sizes;
  if (follows && std::ranges::any_of(input.placements, [](const Placement& p) { return p.is_partial(); }))
    fail_unsupported("a new tensor like one that is partly partial");
  return {{input.placements}, {follows ? input.placements : Placements(c.mesh.dims())}};
}

std::vector<Rule> cast(const PlacedCall& c) {
  std::vector<Rule> rules;
  const TensorMeta& input = c.inputs.at(0).whole;
  for (int d = 0; d < static_cast<int>(input.dim()); ++d)
    rules.push_back({{Placement::shard(d)}, {Placement::shard(d)}, true});
  const DType to = c.dtype("dtype").value_or(input.dtype);
  for (const char* reduce : {"sum", "avg", "min", "max", "product"}) {
    const bool order = std::string_view(reduce).starts_with('m');
    const bool rounds = to == DType::Bool || (!order && is_floating(input.dtype) && !is_floating(to));
    if (to == input.dtype || !rounds) rules.push_back({{Placement::partial(reduce)}, {Placement::partial(reduce)}});
  }
  return rules;
}

}  // namespace

const std::vector<RuleRow>& factory_rules() {
  static const std::vector<RuleRow> rows = {
      {"aten.clone.default", {.list = pointwise_rules, .uneven = true}},
      {"aten.detach.default", {.decide = as_input}},
      {"aten.alias.default", {.decide = as_input}},
      {"aten._to_copy.default", {.list = cast, .uneven = true}},
      {"aten.zeros_like.default", {.decide = like_input}},
      {"aten.ones_like.default", {.decide = like_input}},
      {"aten.full_like.default", {.decide = like_input}},
      {"aten.new_zeros.default", {.decide = new_like, .sizes = "size"}},
      {"aten.new_ones.default", {.decide = new_like, .sizes = "size"}},
      {"aten.new_full.default", {.decide = new_like, .sizes = "size"}},
  };
  return rows;
}

}  // namespace partita
