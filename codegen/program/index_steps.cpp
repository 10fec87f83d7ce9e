#include "codegen/program/index_steps.h"

#include <algorithm>
#include <numeric>

namespace partita::codegen {
namespace {

constexpr std::int64_t index_limit = std::int64_t{1} << 40;

}  // namespace

std::int64_t divisor(SymExpr e, const std::string& var, std::int64_t lanes) {
  switch (e.kind()) {
    case SymKind::Int:
      return std::abs(e.as_int());
    case SymKind::Symbol:
      return e.name() == var ? lanes : 1;
    case SymKind::Add: {
      std::int64_t g = 0;
      for (SymExpr a : e.args()) g = std::gcd(g, divisor(a, var, lanes));
      return g;
    }
    case SymKind::Mul: {
      std::int64_t p = 1;
      for (SymExpr a : e.args()) {
        std::int64_t d = divisor(a, var, lanes);
        if (d > index_limit || p > index_limit / std::max<std::int64_t>(d, 1)) return p;
        p *= d;
      }
      return p;
    }
    case SymKind::Mod:
      return std::gcd(divisor(e.args()[0], var, lanes), divisor(e.args()[1], var, lanes));
    case SymKind::FloorDiv: {
      SymExpr k = e.args()[1];
      std::int64_t d = divisor(e.args()[0], var, lanes);
      return k.is_int() && k.as_int() > 0 && d % k.as_int() == 0 ? d / k.as_int() : 1;
    }
    default:
      return 1;
  }
}

bool mentions(SymExpr e, const std::string& var) {
  if (e.is_int()) return false;
  if (e.kind() == SymKind::Symbol) return e.name() == var;
  return std::any_of(e.args().begin(), e.args().end(), [&](SymExpr a) { return mentions(a, var); });
}

std::optional<SymExpr> lane_step(SymExpr e, const std::string& var, std::int64_t lanes) {
  if (!mentions(e, var)) return SymExpr(0);
  switch (e.kind()) {
    case SymKind::Symbol:
      return SymExpr(1);
    case SymKind::Add: {
      SymExpr sum = 0;
      for (SymExpr a : e.args()) {
        auto step = lane_step(a, var, lanes);
        if (!step) return std::nullopt;
        sum = sum + *step;
      }
      return sum;
    }
    case SymKind::Mul: {
      SymExpr step = 1;
      int varying = 0;
      bool uniform = true;
      for (SymExpr a : e.args()) {
        if (!mentions(a, var)) {
          step = step * a;
          continue;
        }
        auto s = lane_step(a, var, lanes);
        if (!s) return std::nullopt;
        ++varying;
        uniform = uniform && s->is(0);
        step = step * *s;
      }
      if (varying > 1 && !uniform) return std::nullopt;
      return step;
    }
    case SymKind::FloorDiv:
    case SymKind::Mod: {
      SymExpr a = e.args()[0], k = e.args()[1];
      if (!k.is_int() || k.as_int() <= 0) return std::nullopt;
      auto step = lane_step(a, var, lanes);
      if (!step || !step->is_int() || step->as_int() < 0) return std::nullopt;
      if (step->is(0)) return SymExpr(0);
      std::int64_t aligned = std::gcd(divisor(a, var, lanes), k.as_int());
      if (step->as_int() * (lanes - 1) >= aligned) return std::nullopt;
      return e.kind() == SymKind::Mod ? *step : SymExpr(0);
    }
    default:
      return std::nullopt;
  }
}

std::optional<IndexRange> index_range(SymExpr e,
                                      const std::function<std::optional<std::int64_t>(const std::string&)>& extent) {
  auto bounded = [](std::int64_t low, std::int64_t high) -> std::optional<IndexRange> {
    if (low < -index_limit || high > index_limit) return std::nullopt;
    return IndexRange{low, high};
  };
  if (e.is_int()) return bounded(e.as_int(), e.as_int());
  if (e.kind() == SymKind::Symbol) {
    auto n = extent(e.name());
    if (!n) return std::nullopt;
    return bounded(0, std::max<std::int64_t>(*n - 1, 0));
  }
  std::optional<IndexRange> all;
  for (SymExpr a : e.args()) {
    auto r = index_range(a, extent);
    if (!r) return std::nullopt;
    if (!all) {
      all = r;
      continue;
    }
    switch (e.kind()) {
      case SymKind::Add:
        all = bounded(all->low + r->low, all->high + r->high);
        break;
      case SymKind::Mul: {
        // Both factors are below 2^40 in magnitude; a larger product is not an index.
        const double corners[] = {double(all->low) * double(r->low), double(all->low) * double(r->high),
                                  double(all->high) * double(r->low), double(all->high) * double(r->high)};
        auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
        if (*low < -double(index_limit) || *high > double(index_limit)) return std::nullopt;
        all = bounded(static_cast<std::int64_t>(*low), static_cast<std::int64_t>(*high));
        break;
      }
      case SymKind::FloorDiv:
        if (r->low != r->high || r->low <= 0 || all->low < 0) return std::nullopt;
        all = bounded(all->low / r->low, all->high / r->low);
        break;
      case SymKind::Mod:
        if (r->low != r->high || r->low <= 0 || all->low < 0) return std::nullopt;
        all = bounded(0, std::min(all->high, r->low - 1));
        break;
      case SymKind::Min:
        all = bounded(std::min(all->low, r->low), std::min(all->high, r->high));
        break;
      case SymKind::Max:
        all = bounded(std::max(all->low, r->low), std::max(all->high, r->high));
        break;
      default:
        return std::nullopt;
    }
    if (!all) return std::nullopt;
  }
  return all;
}

}  // namespace partita::codegen
