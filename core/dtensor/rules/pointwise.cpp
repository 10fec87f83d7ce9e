// Element by element: shards of a dimension stay, sums only where the operator is linear, greatest and least values
// where it keeps the order (_pointwise_ops.py).
#include <algorithm>

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

/// The operators that have the same words.
struct WordsRow {
  Words words;
  std::vector<std::string_view> operators;
};

const Words* partial_rules(std::string_view op) {
  static const std::vector<WordsRow> rows = {
      {{"sss", "aaa", "aaR", "xxR", "nnR", "aRa"}, {"aten.add.Tensor", "aten.sub.Tensor"}},
      {{"ss", "aa", "ssR", "aaR", "sRs", "aRa"}, {"aten.mul.Tensor"}},
      {{"ss", "aa", "ssR", "aaR"}, {"aten.div.Tensor"}},
      {{"ss", "aa"}, {"aten.mul.Scalar", "aten.div.Scalar"}},
      {{"ss", "aa", "nx", "xn"}, {"aten.neg.default"}},
      {{"nx", "xn"}, {"aten.erfc.default", "aten.special_erfcx.default"}},
      {{"xxR", "xRx", "nnR", "nRn"}, {"aten.logaddexp.default", "aten.logaddexp2.default"}},
      {{"xxR", "xRx", "nnR", "nRn", "xxx"}, {"aten.maximum.default", "aten.fmax.default", "aten.clamp_min.Tensor"}},
      {{"xxR", "xRx", "nnR", "nRn", "nnn"}, {"aten.minimum.default", "aten.fmin.default", "aten.clamp_max.Tensor"}},
      {{"xx", "nn"}, {"aten.asinh.default",     "aten.atan.default",
                      "aten.ceil.default",      "aten.erf.default",
                      "aten.exp.default",       "aten.exp2.default",
                      "aten.expm1.default",     "aten.floor.default",
                      "aten.relu.default",      "aten.round.default",
                      "aten.round.decimals",    "aten.sgn.default",
                      "aten.sigmoid.default",   "aten.sign.default",
                      "aten.sinh.default",      "aten.tanh.default",
                      "aten.trunc.default",     "aten.nan_to_num.default",
                      "aten.rad2deg.default",   "aten.deg2rad.default",
                      "aten.threshold.default", "aten.special_modified_bessel_i1.default",
                      "aten.hardshrink.default"}},
      {{"xn"},  // of positive numbers
       {"aten.special_modified_bessel_k0.default", "aten.special_modified_bessel_k1.default",
        "aten.special_scaled_modified_bessel_k0.default", "aten.special_scaled_modified_bessel_k1.default"}},
      {{"ssR", "aaR"}, {"aten.special_xlog1py.default", "aten.special_xlog1py.other_scalar"}},
      {{"ss", "aa", "xx", "nn"}, {"aten.positive.default"}},
  };
  const auto has = [&](const WordsRow& row) { return std::ranges::find(row.operators, op) != row.operators.end(); };
  const auto found = std::ranges::find_if(rows, has);
  return found == rows.end() ? nullptr : &found->words;
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
