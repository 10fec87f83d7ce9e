#include "core/ops/record/guards.h"

#include <algorithm>

#include <fmt/format.h>

namespace partita {

std::optional<bool> guard_if_known(const FakeCall& call, SymExpr condition, const char* reason) {
  if (auto known = call.shapes.statically(condition)) return *known;
  return call.shapes.hint(condition) ? std::optional(call.test(condition, reason)) : std::nullopt;
}

bool guard_or(const FakeCall& call, SymExpr condition, bool otherwise, const char* reason) {
  return guard_if_known(call, condition, reason).value_or(otherwise);
}

bool checked(const FakeCall& call, SymExpr condition, const char* reason) {
  return guard_or(call, condition, true, reason);
}

bool checked(const DecomposeCall& call, SymExpr condition, const char* reason) {
  if (const auto known = guard_if_known(call, condition, reason)) return *known;
  call.build.call(
      "aten._assert_scalar.default",
      {call.build.size(condition), fmt::format("{}: {} is expected ({})", call.schema.base, condition.str(), reason)});
  return true;
}

bool checked_sizes(const FakeCall& call, std::span<const SymExpr> a, std::span<const SymExpr> b, const char* reason) {
  return std::ranges::equal(a, b, [&](SymExpr x, SymExpr y) { return checked(call, sym_eq(x, y), reason); });
}

std::optional<std::int64_t> guarded_number(const FakeCall& call, SymExpr size, const char* reason) {
  const auto number = call.shapes.hint(size);
  if (number && !size.is_int()) call.test(sym_eq(size, *number), reason);
  return number;
}

bool checked_equal(const FakeCall& call, SymExpr a, SymExpr b, const char* reason) {
  return a == b || guard_or(call, sym_eq(a, b), true, reason);
}

bool has_unbacked(const FakeCall& call, std::span<const SymExpr> list) {
  return std::any_of(list.begin(), list.end(), [&](SymExpr e) { return !call.shapes.hint(e); });
}

}  // namespace partita
