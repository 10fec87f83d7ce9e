// Reductions, scans, softmax and the negative log-likelihood (_math_ops.py).
#include <algorithm>
#include <numeric>

#include "core/dtensor/rules.h"

namespace partita {
namespace {

/// The dimensions that a call reduces: those of `dim`, else all.
std::vector<int> reduced_dims(const PlacedCall& c) {
  const auto rank = static_cast<int>(c.inputs.at(0).whole.dim());
  std::vector<int> dims;
  if (c.schema.index_of("dim") >= 0 && c.has("dim"))
    for (const std::int64_t d : c.integers("dim")) dims.push_back(static_cast<int>(d < 0 ? d + rank : d));
  if (dims.empty()) {
    dims.resize(static_cast<std::size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  return dims;
}

bool contains(const std::vector<int>& dims, int d) {
  return std::ranges::find(dims, d) != dims.end();
}

/// Do all ranks have as much of the dimension?
bool is_even(const PlacedCall& c, const PlacedArgument& a, int dim) {
  std::int64_t parts = 1;
  for (std::size_t i = 0; i < a.placements.size(); ++i)
    if (a.placements[i].is_shard(dim)) parts *= c.mesh.sizes[i];
  return a.whole.sizes[static_cast<std::size_t>(dim)].as_int() % parts == 0;
}

/// `reduce`: how results of shards of a reduced dimension are put together; "": they cannot be.
PlacedPlan reduction(const PlacedCall& c, std::string_view reduce, const std::vector<int>& dims, bool keep) {
  const PlacedArgument& input = c.inputs.at(0);
  bool linear = !reduce.empty();
  for (const int d : dims) linear = linear && (reduce != "avg" || is_even(c, input, d));
  for (const Placement& p : input.placements) linear = linear && (!p.is_partial() || p.reduce == reduce);
  PlacedPlan plan;
  plan.inputs = {linear ? input.placements : replicated(input.placements, dims, true)};
  Placements out = plan.inputs[0];
  for (Placement& p : out) {
    if (!p.is_shard()) continue;
    if (contains(dims, p.dim))
      p = Placement::partial(reduce);
    else if (!keep)
      p.dim -= static_cast<int>(std::ranges::count_if(dims, [&](int d) { return d < p.dim; }));
  }
  plan.outputs.assign(c.outputs.size(), out);
  return plan;
}

bool keeps_dims(const PlacedCall& c) {
  return c.schema.index_of("keepdim") >= 0 && c.has("keepdim") && c.boolean("keepdim");
}

constexpr char by_sum[] = "sum", by_avg[] = "avg", by_product[] = "product", by_max[] = "max", by_min[] = "min",
               not_joined[] = "";

template <const char* reduce>
PlacedPlan reduces(const PlacedCall& c) {
  return reduction(c, reduce, reduced_dims(c), keeps_dims(c));
}

PlacedPlan scan(const PlacedCall& c) {
  return reduction(c, not_joined, {static_cast<int>(c.dim_argument("dim", c.inputs.at(0).whole.dim()))}, true);
}

PlacedPlan softmax(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(0);
  const auto dim = static_cast<int>(c.dim_argument("dim", input.whole.dim()));
  const Placements all = replicated(input.placements, {dim}, true);
  return {{all}, {all}};
}

std::int64_t shards(const PlacedCall& c, const Placements& placements) {
  std::int64_t n = 1;
  for (std::size_t i = 0; i < placements.size(); ++i)
    if (placements[i].is_shard()) n *= c.mesh.sizes[i];
  return n;
}

/// Follows the gradient or the result, whichever is in more shards.
PlacedPlan softmax_backward(const PlacedCall& c) {
  const PlacedArgument &grad = c.inputs.at(0), &output = c.inputs.at(1);
  const auto dim = static_cast<int>(c.dim_argument("dim", grad.whole.dim()));
  const bool follow_grad = shards(c, grad.placements) >= shards(c, output.placements);
  const Placements all = replicated(follow_grad ? grad.placements : output.placements, {dim}, true);
  return {{all, all}, {all}};
}

Placements without_dim(Placements placements, int dim) {
  for (Placement& p : placements)
    if (p.is_shard() && p.dim >= dim) --p.dim;
  return placements;
}
Placements all_replicated(const PlacedCall& c) {
  return Placements(c.mesh.dims());
}

enum NllReduction { NllNone, NllMean, NllSum };

PlacedPlan nll_forward(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(0);
  const int channel = input.whole.dim() >= 2 ? 1 : 0;
  PlacedPlan plan;
  const Placements own = replicated(input.placements, {channel}, true), target = without_dim(own, channel);
  plan.inputs = {own, target};
  if (c.has("weight")) plan.inputs.push_back(all_replicated(c));
  const std::int64_t kind = c.integer("reduction");
  if (kind == NllNone) {
    plan.outputs = {target, all_replicated(c)};
    return plan;
  }
  const PlacedArgument placed{c.inputs.at(1).whole, target};
  for (int d = 0; d < static_cast<int>(placed.whole.dim()); ++d)
    if (kind == NllMean && !is_even(c, placed, d)) fail_unsupported("a mean loss of shards of different sizes");
  Placements loss = target, weight = target;
  for (std::size_t i = 0; i < target.size(); ++i)
    if (target[i].is_shard()) {
      loss[i] = Placement::partial(kind == NllMean ? "avg" : "sum");
      weight[i] = Placement::partial("sum");
    }
  plan.outputs = {loss, weight};
  return plan;
}

PlacedPlan nll_backward(const PlacedCall& c) {
  const PlacedArgument& input = c.inputs.at(1);
  const int channel = input.whole.dim() >= 2 ? 1 : 0;
  const Placements own = replicated(input.placements, {channel}, true), target = without_dim(own, channel);
  const std::int64_t kind = c.integer("reduction");
  PlacedPlan plan;
  plan.inputs = {kind == NllNone ? target : all_replicated(c), own, target};
  if (c.has("weight")) plan.inputs.push_back(all_replicated(c));
  plan.inputs.push_back(kind == NllMean ? all_replicated(c) : c.inputs.back().placements);
  plan.outputs = {own};
  return plan;
}

/// Values and their places along a dimension, which must be whole.
std::vector<Rule> along_dim(const PlacedCall& c) {
  const auto rank = static_cast<int>(c.inputs.at(0).whole.dim());
  const auto dim = static_cast<int>(c.dim_argument("dim", c.inputs.at(0).whole.dim()));
  std::vector<Rule> rules;
  for (int d = 0; d < rank; ++d) {
    if (d == dim) continue;
    const int to = keeps_dims(c) || d < dim ? d : d - 1;
    rules.push_back({{Placement::shard(to), Placement::shard(to)}, {Placement::shard(d)}, true});
  }
  return rules;
}

}  // namespace

const std::vector<RuleRow>& reduction_rules() {
  static const std::vector<RuleRow> rows = {
      {"aten.sum.default", {.decide = reduces<by_sum>}},
      {"aten.sum.dim_IntList", {.decide = reduces<by_sum>}},
      {"aten.nansum.default", {.decide = reduces<by_sum>}},
      {"aten.mean.default", {.decide = reduces<by_avg>}},
      {"aten.mean.dim", {.decide = reduces<by_avg>}},
      {"aten.prod.default", {.decide = reduces<by_product>}},
      {"aten.prod.dim_int", {.decide = reduces<by_product>}},
      {"aten.max.default", {.decide = reduces<by_max>}},
      {"aten.min.default", {.decide = reduces<by_min>}},
      {"aten.amax.default", {.decide = reduces<by_max>}},
      {"aten.amin.default", {.decide = reduces<by_min>}},
      {"aten.argmax.default", {.decide = reduces<not_joined>}},
      {"aten.argmin.default", {.decide = reduces<not_joined>}},
      {"aten.var.correction", {.decide = reduces<not_joined>}},
      {"aten.std.correction", {.decide = reduces<not_joined>}},
      {"aten.var_mean.correction", {.decide = reduces<not_joined>}},
      {"aten.max.dim", {.list = along_dim}},
      {"aten.min.dim", {.list = along_dim}},
      {"aten.cumsum.default", {.decide = scan}},
      {"aten.cumprod.default", {.decide = scan}},
      {"aten.logcumsumexp.default", {.decide = scan}},
      {"aten._softmax.default", {.decide = softmax}},
      {"aten._log_softmax.default", {.decide = softmax}},
      {"aten._safe_softmax.default", {.decide = softmax}},
      {"aten._softmax_backward_data.default", {.decide = softmax_backward}},
      {"aten._log_softmax_backward_data.default", {.decide = softmax_backward}},
      {"aten.nll_loss_forward.default", {.decide = nll_forward}},
      {"aten.nll_loss_backward.default", {.decide = nll_backward}},
  };
  return rows;
}

}  // namespace partita
