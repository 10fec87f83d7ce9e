#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "core/dtensor/rules.h"

namespace partita {

std::int64_t PlacedCall::dim_argument(std::string_view name, std::size_t of) const {
  const auto n = static_cast<std::int64_t>(of);
  const std::int64_t d = integer(name);
  if (d < -n || d >= std::max<std::int64_t>(n, 1)) fail(fmt::format("{} is {} of {} dimensions", name, d, n));
  return d < 0 ? d + n : d;
}

Placements replicated(Placements placements, const std::vector<int>& dims, bool partial) {
  for (Placement& p : placements)
    if ((partial && p.is_partial()) || (p.is_shard() && std::ranges::find(dims, p.dim) != dims.end())) p = Placement();
  return placements;
}

OperatorRules rules_of(const Schema& schema) {
  static const auto* table = [] {
    auto* all = new std::unordered_map<std::string_view, OperatorRules>();
    for (const auto* rows :
         {&matmul_rules(), &reduction_rules(), &norm_rules(), &view_rules(), &join_rules(), &factory_rules()})
      for (const RuleRow& row : *rows) all->emplace(row.op, row.rules);
    return all;
  }();
  if (const auto found = table->find(schema.name); found != table->end()) return found->second;
  if (schema.pointwise && !schema.is_mutable && !schema.nondeterministic_seeded)
    return {.list = pointwise_rules, .uneven = true};
  return {};
}

}  // namespace partita
