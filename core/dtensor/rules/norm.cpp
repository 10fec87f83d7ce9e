// Norms over the last dimensions: those before may be sharded (_math_ops.py).

#include "core/dtensor/rules.h"

namespace partita {
namespace {

/// A rule for each dimension that is not normalised, of argument `like`: the first `outputs` results and `sharded`
/// arguments are cut along it, `sums` more results are sums, and the other arguments are whole.
template <std::size_t like, int outputs, int sums, std::size_t sharded>
std::vector<Rule> along_outer_dims(const PlacedCall& c) {
  const auto dims = c.inputs.at(like).whole.dim() - c.integers("normalized_shape").size();
  std::vector<Rule> rules;
  for (int d = 0; d < static_cast<int>(dims); ++d) {
    Rule rule{std::vector(outputs, Placement::shard(d)), std::vector(sharded, Placement::shard(d)), true};
    // Gradients of weight and bias are sums over the sharded dimension.
    rule.outputs.resize(outputs + sums, Placement::partial("sum"));
    rule.inputs.resize(c.inputs.size());
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

const std::vector<RuleRow>& norm_rules() {
  static const std::vector<RuleRow> rows = {
      {"aten.native_layer_norm.default", {.list = along_outer_dims<0, 3, 0, 1>}},
      {"aten.native_layer_norm_backward.default", {.list = along_outer_dims<1, 1, 2, 4>}},
      {"aten._fused_rms_norm.default", {.list = along_outer_dims<0, 2, 0, 1>}},
      {"aten._fused_rms_norm_backward.default", {.list = along_outer_dims<1, 1, 1, 3>}},
  };
  return rows;
}

}  // namespace partita
