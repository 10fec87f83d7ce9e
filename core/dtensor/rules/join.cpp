// Parts of tensors, and tensors put together (_tensor_ops.py). The dimension that is cut or joined must be whole.

#include "core/base/raise.h"
#include "core/dtensor/choose.h"
#include "core/dtensor/rules.h"

namespace partita {
namespace {

Placements shifted(Placements placements, std::int64_t from, int by) {
  for (Placement& p : placements)
    if (p.is_shard() && p.dim >= from) p.dim += by;
  return placements;
}

Placements whole_along(const Placements& placements, std::int64_t dim) {
  return replicated(placements, {static_cast<int>(dim)}, false);
}

PlacedPlan slice(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(0);
  const std::int64_t dim = c.dim_argument("dim", input.whole.dim());
  const bool all = c.outputs.at(0) && c.outputs[0]->sizes == input.whole.sizes && c.integer("step") == 1;
  const Placements own = all ? input.placements : whole_along(input.placements, dim);
  return {{own}, {own}};
}

PlacedPlan select(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(0);
  const std::int64_t dim = c.dim_argument("dim", input.whole.dim());
  const Placements own = whole_along(input.placements, dim);
  return {{own}, {shifted(own, dim, -1)}};
}

PlacedPlan select_backward(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(0);
  return {{input.placements}, {shifted(input.placements, c.dim_argument("dim", input.whole.dim() + 1), 1)}};
}

/// Of split and slice_backward.
PlacedPlan along_whole(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(0);
  const Placements own = whole_along(input.placements, c.dim_argument("dim", input.whole.dim()));
  return {{own}, std::vector(c.outputs.size(), own)};
}

PlacedPlan unbind(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(0);
  const std::int64_t dim = c.dim_argument("dim", input.whole.dim());
  if (whole_along(input.placements, dim) != input.placements) fail_unsupported("unbind of a sharded dimension");
  return {{input.placements}, std::vector(c.outputs.size(), shifted(input.placements, dim, -1))};
}

/// Follows the tensor that makes the others' ways cheapest.
PlacedPlan cat(const PlacedCall& c) {
  const std::int64_t dim = c.dim_argument("dim", c.inputs.at(0).whole.dim());
  std::vector<PlacedPlan> plans;
  for (const PlacedArgument& input : c.inputs) {
    if (input.whole.dim() != c.inputs[0].whole.dim()) fail_unsupported("cat of DTensors of different ranks");
    const Placements own = whole_along(input.placements, dim);
    plans.push_back({std::vector(c.inputs.size(), own), {own}});
  }
  return unwrap(cheapest(c, plans));
}

/// Shards before sums, sums before whole tensors; different ones of a kind are made whole.
Placement merged(const Placement& a, const Placement& b) {
  if (a == b || b.is_replicate()) return a;
  if (a.is_replicate()) return b;
  if (a.is_partial()) return b.is_shard() ? b : Placement();
  return b.is_shard() ? Placement() : a;
}

PlacedPlan stack(const PlacedCall& c) {
  Placements all = c.inputs.at(0).placements;
  for (const PlacedArgument& input : c.inputs)
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = merged(all[i], input.placements[i]);
  return {std::vector(c.inputs.size(), all), {shifted(all, c.dim_argument("dim", c.inputs[0].whole.dim() + 1), 1)}};
}

}  // namespace

const std::vector<RuleRow>& join_rules() {
  static const std::vector<RuleRow> rows = {
      {"aten.slice.Tensor", {.decide = slice}},
      {"aten.slice_backward.default", {.decide = along_whole, .sizes = "input_sizes"}},
      {"aten.select.int", {.decide = select}},
      {"aten.select_backward.default", {.decide = select_backward, .sizes = "input_sizes"}},
      {"aten.split.Tensor", {.decide = along_whole}},
      {"aten.split_with_sizes.default", {.decide = along_whole}},
      {"aten.unbind.int", {.decide = unbind}},
      {"aten.cat.default", {.decide = cat}},
      {"aten.stack.default", {.decide = stack}},
  };
  return rows;
}

}  // namespace partita
