// Norms over the last dimensions: those before may be sharded (_math_ops.py).
#include <algorithm>

#include "core/dtensor/rules.h"

namespace partita {
namespace {

/// The number of dimensions that are not normalised.
int outer_dims(const PlacedCall& c, const TensorMeta& input) {
  return static_cast<int>(input.dim()) - static_cast<int>(c.integers("normalized_shape").size());
}

Placement here(int dim) {
  return Placement::shard(dim);
}

std::vector<Rule> layer_norm(const PlacedCall& c) {
  std::vector<Rule> rules;
  for (int d = 0; d < outer_dims(c, c.inputs.at(0).whole); ++d) {
    Rule rule{{here(d), here(d), here(d)}, {here(d)}, true};
    rule.inputs.resize(c.inputs.size());
    rules.push_back(std::move(rule));
  }
  return rules;
}

/// Gradients of weight and bias are sums over the sharded dimension.
std::vector<Rule> layer_norm_backward(const PlacedCall& c) {
  std::vector<Rule> rules;
  const Placement sum = Placement::partial("sum");
  for (int d = 0; d < outer_dims(c, c.inputs.at(1).whole); ++d) {
    Rule rule{{here(d), sum, sum}, {here(d), here(d), here(d), here(d)}, true};
    rule.inputs.resize(c.inputs.size());
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<Rule> rms_norm(const PlacedCall& c) {
  std::vector<Rule> rules;
  for (int d = 0; d < outer_dims(c, c.inputs.at(0).whole); ++d) {
    Rule rule{{here(d), here(d)}, {here(d)}, true};
    rule.inputs.resize(c.inputs.size());
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<Rule> rms_norm_backward(const PlacedCall& c) {
  std::vector<Rule> rules;
  for (int d = 0; d < outer_dims(c, c.inputs.at(1).whole); ++d) {
    Rule rule{{here(d), Placement::partial("sum")}, {here(d), here(d), here(d)}, true};
    rule.inputs.resize(c.inputs.size());
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

const std::vector<RuleRow>& norm_rules() {
  static const std::vector<RuleRow> rows = {
      {"aten.native_layer_norm.default", {.list = layer_norm}},
      {"aten.native_layer_norm_backward.default", {.list = layer_norm_backward}},
      {"aten._fused_rms_norm.default", {.list = rms_norm}},
      {"aten._fused_rms_norm_backward.default", {.list = rms_norm_backward}},
  };
  return rows;
}

}  // namespace partita
