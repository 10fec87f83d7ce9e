// Element by element: shards of a dimension stay, sums only where the operator is linear, greatest and least values
// where it keeps the order (_pointwise_ops.py).
#include <algorithm>
#include <unordered_map>

#include "core/dtensor/rules.h"

namespace partita {
namespace {

Placement partial_of(char c) {
  switch (c) {
    case 's':
      return Placement::partial("sum");
    case 'a':
      return Placement::partial("avg");
    case 'x':
      return Placement::partial("max");
    case 'n':
      return Placement::partial("min");
    default:
      return Placement();
  }
}

/// Rules as words of a letter for each result and argument: s(um), a(vg), x for max, n for min, R.
using Words = std::vector<std::string_view>;

const Words linear_words = {"ss", "aa"};
const Words additive_words = {"sss", "aaa", "aaR", "xxR", "nnR", "aRa"};
const Words product_words = {"ss", "aa", "ssR", "aaR", "sRs", "aRa"};
const Words quotient_words = {"ss", "aa", "ssR", "aaR"};
const Words increasing_words = {"xx", "nn"};
const Words decreasing_words = {"nx", "xn"};
const Words negation_words = {"ss", "aa", "nx", "xn"};
const Words falling_words = {"xn"};  // of positive numbers
const Words left_words = {"ssR", "aaR"};
const Words kept_words = {"ss", "aa", "xx", "nn"};
const Words monotone_words = {"xxR", "xRx", "nnR", "nRn"};
const Words greatest_words = {"xxR", "xRx", "nnR", "nRn", "xxx"};
const Words least_words = {"xxR", "xRx", "nnR", "nRn", "nnn"};

const Words* partial_rules(std::string_view op) {
  static const std::unordered_map<std::string_view, const Words*> rows = {
      {"aten.add.Tensor", &additive_words},
      {"aten.sub.Tensor", &additive_words},
      {"aten.mul.Tensor", &product_words},
      {"aten.div.Tensor", &quotient_words},
      {"aten.mul.Scalar", &linear_words},
      {"aten.div.Scalar", &linear_words},
      {"aten.neg.default", &negation_words},
      {"aten.erfc.default", &decreasing_words},
      {"aten.special_erfcx.default", &decreasing_words},
      {"aten.logaddexp.default", &monotone_words},
      {"aten.logaddexp2.default", &monotone_words},
      {"aten.maximum.default", &greatest_words},
      {"aten.fmax.default", &greatest_words},
      {"aten.clamp_min.Tensor", &greatest_words},
      {"aten.minimum.default", &least_words},
      {"aten.fmin.default", &least_words},
      {"aten.clamp_max.Tensor", &least_words},
      {"aten.asinh.default", &increasing_words},
      {"aten.atan.default", &increasing_words},
      {"aten.ceil.default", &increasing_words},
      {"aten.erf.default", &increasing_words},
      {"aten.exp.default", &increasing_words},
      {"aten.exp2.default", &increasing_words},
      {"aten.expm1.default", &increasing_words},
      {"aten.floor.default", &increasing_words},
      {"aten.relu.default", &increasing_words},
      {"aten.round.default", &increasing_words},
      {"aten.round.decimals", &increasing_words},
      {"aten.sgn.default", &increasing_words},
      {"aten.sigmoid.default", &increasing_words},
      {"aten.sign.default", &increasing_words},
      {"aten.sinh.default", &increasing_words},
      {"aten.tanh.default", &increasing_words},
      {"aten.trunc.default", &increasing_words},
      {"aten.nan_to_num.default", &increasing_words},
      {"aten.rad2deg.default", &increasing_words},
      {"aten.deg2rad.default", &increasing_words},
      {"aten.threshold.default", &increasing_words},
      {"aten.special_modified_bessel_i1.default", &increasing_words},
      {"aten.special_modified_bessel_k0.default", &falling_words},
      {"aten.special_modified_bessel_k1.default", &falling_words},
      {"aten.special_scaled_modified_bessel_k0.default", &falling_words},
      {"aten.special_scaled_modified_bessel_k1.default", &falling_words},
      {"aten.special_xlog1py.default", &left_words},
      {"aten.special_xlog1py.other_scalar", &left_words},
      {"aten.positive.default", &kept_words},
      {"aten.hardshrink.default", &increasing_words}};
  const auto found = rows.find(op);
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace

std::vector<Rule> pointwise_rules(const PlacedCall& call) {
  std::vector<Rule> rules;
  const auto& whole = call.outputs.at(0);
  if (!whole) return rules;
  const std::size_t rank = whole->dim();
  for (std::size_t d = 0; d < rank; ++d) {
    Rule rule{std::vector(call.outputs.size(), Placement::shard(static_cast<int>(d))), {}, true};
    for (const PlacedArgument& input : call.inputs) {
      // Sizes broadcast from the last dimension on. What has another size is broadcast along it.
      const std::size_t behind = rank - d;
      const bool has = input.whole.dim() >= behind && input.whole.sizes[input.whole.dim() - behind] == whole->sizes[d];
      rule.inputs.push_back(has ? Placement::shard(static_cast<int>(input.whole.dim() - behind)) : Placement());
    }
    rules.push_back(std::move(rule));
  }
  const Words* words = partial_rules(call.schema.name);
  for (const std::string_view word : words ? *words : Words()) {
    if (word.size() != call.inputs.size() + 1) continue;
    Rule rule{{partial_of(word[0])}, {}, false};
    std::ranges::transform(word.substr(1), std::back_inserter(rule.inputs), partial_of);
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace partita
