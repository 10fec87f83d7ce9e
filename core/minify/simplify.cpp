#include "core/base/hash.h"
#include "core/minify/search.h"
#include "core/minify/variants.h"

namespace partita::minify {
namespace {

struct Rule {
  const char* name;
  void (*offer)(const Graph&, const std::vector<Value>&, const Offer&);
};
/// Rules that remove things come first: what is removed need not be simplified.
constexpr Rule rules[] = {
    {"remove outputs", fewer_outputs}, {"bypass calls", bypassed_calls},     {"calls as inputs", calls_as_inputs},
    {"earlier ends", earlier_ends},    {"merge placeholders", fewer_inputs}, {"drop arguments", fewer_arguments},
    {"shrink sizes", smaller_sizes},   {"reduce dtypes", plainer_dtypes},    {"simple input values", plainer_values},
};

/// Applies one rule until none of its variants fails. Returns whether any did.
Result<bool> apply(const Rule& rule, Search& search) {
  bool any = false;
  for (bool taken = true; taken && !search.enough();) {
    taken = false;
    const Candidate now = search.best();
    TRY(const std::vector<Value> inputs, now.inputs());
    const std::uint64_t salt = now.base ? now.base->salt() : now.salt;
    Status problem;
    rule.offer(*now.graph, inputs, [&](Variant variant) {
      const std::uint64_t new_salt = variant.change.empty() ? salt : hash_combine(salt, hash64(variant.change));
      Candidate candidate = with_inputs(std::move(variant.graph), std::move(variant.inputs), new_salt);
      if (candidate.calls == 0) return false;
      auto fails = search.fails(candidate);
      if (!fails) {
        problem = std::move(fails).error();
        return true;
      }
      if (!*fails) return search.enough();
      search.take(std::move(candidate));
      taken = any = true;
      return true;
    });
    if (!problem) return std::move(problem).error();
  }
  return any;
}

}  // namespace

Status simplify(Search& search) {
  for (bool any = true; any && !search.enough();) {
    any = false;
    for (const Rule& rule : rules) {
      search.strategy(rule.name);
      TRY(const bool taken, apply(rule, search));
      any |= taken;
    }
  }
  return {};
}

}  // namespace partita::minify
