// Decides conditions on symbols by interval arithmetic, by bounds of polynomials, and by inequalities that the program
// asserts. Where these do not decide, hints do, and a guard is recorded.
#include "core/sym/shape_env.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/sym/float_symbol.h"
#include "core/sym/sym_node.h"

namespace partita {
namespace {

constexpr std::int64_t unbounded = INT64_MAX;

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (a == unbounded || b == unbounded || __builtin_add_overflow(a, b, &out)) return unbounded;
  return out;
}

/// INT64_MIN: unbounded below.
std::int64_t sum_of_lows(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (a == INT64_MIN || b == INT64_MIN) return INT64_MIN;
  if (__builtin_add_overflow(a, b, &out)) return a < 0 ? INT64_MIN : unbounded;
  return a == unbounded || b == unbounded ? unbounded : out;
}

std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (a == 0 || b == 0) return 0;
  if (a == unbounded || b == unbounded || __builtin_mul_overflow(a, b, &out)) return unbounded;
  return out;
}

/// The degree of a product of symbols with a coefficient below 2^32; nullopt for other terms.
std::optional<std::int64_t> degree_of(SymExpr e) {
  switch (e.kind()) {
    case SymKind::Int:
      return std::abs(static_cast<double>(e.as_int())) < 0x1p32 ? std::optional<std::int64_t>(0) : std::nullopt;
    case SymKind::Symbol:
      return 1;
    case SymKind::Pow:
      if (e.args()[0].kind() != SymKind::Symbol || !e.args()[1].is_int() || e.args()[1].as_int() < 0) return {};
      return e.args()[1].as_int();
    case SymKind::Mul: {
      std::int64_t sum = 0;
      for (SymExpr factor : e.args()) {
        const auto degree = degree_of(factor);
        if (!degree || *degree > 4) return std::nullopt;
        sum += *degree;
      }
      return sum;
    }
    default:
      return std::nullopt;
  }
}

/// A sum of such terms.
bool is_polynomial(SymExpr e) {
  return e.kind() == SymKind::Add ? std::ranges::all_of(e.args(), [](SymExpr term) { return bool(degree_of(term)); })
                                  : degree_of(e).has_value();
}

/// The range of a multiple of what has this range.
SymRange scaled(SymRange r, std::int64_t by) {
  const auto times = [by](std::int64_t end) {
    std::int64_t out;
    if (end == unbounded || end == INT64_MIN || __builtin_mul_overflow(end, by, &out))
      return (end > 0) == (by > 0) ? unbounded : INT64_MIN;
    return out;
  };
  return by < 0 ? SymRange{times(r.high), times(r.low)} : SymRange{times(r.low), times(r.high)};
}

/// The greatest value of a sum of products, by writing each symbol as its least value and a rest of at least 0: where
/// no coefficient is positive, it is the constant. Tells n < n**2 for n >= 2, which intervals do not.
std::int64_t greatest_by_least(SymExpr e, const std::function<std::int64_t(SymExpr symbol)>& least) {
  // Small enough that no coefficient of what is made has more than 64 bits.
  const auto small = [](SymExpr term) {
    const auto degree = degree_of(term);
    return degree && *degree <= 4;
  };
  if (e.kind() != SymKind::Add || e.args().size() > 8 || !std::ranges::all_of(e.args(), small)) return unbounded;
  bool bounded = true;
  const SymExpr moved = e.substitute([&](const std::string& name) -> std::optional<SymExpr> {
    const SymExpr symbol = SymExpr::symbol(name);
    const std::int64_t from = least(symbol);
    bounded = bounded && from >= 0 && from <= 64;
    return bounded ? symbol + from : symbol;
  });
  if (!bounded) return unbounded;
  std::int64_t constant = 0;
  bool rises = false;
  const auto count = [&](SymExpr term) {
    if (term.is_int())
      constant = term.as_int();
    else
      rises |= split_coefficient(term).first > 0;
  };
  if (moved.kind() == SymKind::Add)
    for (SymExpr term : moved.args()) count(term);
  else
    count(moved);
  return rises ? unbounded : constant;
}

std::int64_t highest(SymExpr e, const std::function<SymRange(SymExpr)>& bounds) {
  return std::min(bounds(e).high, greatest_by_least(e, [&](SymExpr symbol) { return bounds(symbol).low; }));
}

}  // namespace

void ShapeEnv::set_hint(const std::string& symbol, std::int64_t value) {
  std::lock_guard lock(mutex_);
  hints_[symbol] = value;
}

void ShapeEnv::set_range(const std::string& symbol, SymRange range) {
  std::lock_guard lock(mutex_);
  ranges_[symbol] = range;
}

std::map<std::string, std::int64_t> ShapeEnv::hints() const {
  std::lock_guard lock(mutex_);
  return hints_;
}

std::map<std::string, SymRange> ShapeEnv::ranges() const {
  std::lock_guard lock(mutex_);
  return ranges_;
}

std::vector<Guard> ShapeEnv::guards() const {
  std::lock_guard lock(mutex_);
  return guards_;
}

SymExpr ShapeEnv::new_unbacked(std::int64_t low, std::int64_t high) {
  std::lock_guard lock(mutex_);
  std::string name;
  do name = fmt::format("u{}", next_unbacked_++);
  while (ranges_.contains(name));
  ranges_[name] = {low, high};
  return SymExpr::symbol(name);
}

SymExpr ShapeEnv::new_unbacked_float() {
  std::lock_guard lock(mutex_);
  return SymExpr::symbol(fmt::format("zuf{}", next_unbacked_float_++));
}

void ShapeEnv::assume(SymExpr condition) {
  const auto holds = [&](bool negated, SymKind kind, SymExpr a, SymExpr b) {
    if (kind == SymKind::Eq && !negated) {
      assume_not_positive(a - b);
      assume_not_positive(b - a);
    } else if (kind == SymKind::Le || kind == SymKind::Lt) {
      const SymExpr difference = negated ? b - a : a - b;
      assume_not_positive((kind == SymKind::Lt) != negated ? difference + 1 : difference);
    }
  };
  if (condition.kind() == SymKind::And) {
    for (SymExpr part : condition.args()) assume(part);
    return;
  }
  const bool negated = condition.kind() == SymKind::Not;
  const SymExpr compared = negated ? condition.args()[0] : condition;
  if (compared.args().size() == 2) holds(negated, compared.kind(), compared.args()[0], compared.args()[1]);
}

void ShapeEnv::assume_not_positive(SymExpr e) {
  if (e.is_float() || !std::ranges::any_of(e.symbols(), is_unbacked)) return;
  std::lock_guard lock(mutex_);
  // c + u <= 0 and c - u <= 0 are ranges.
  std::int64_t constant = 0;
  SymExpr rest = e;
  if (e.kind() == SymKind::Add && e.args().size() == 2 && e.args()[0].is_int()) {
    constant = e.args()[0].as_int();
    rest = e.args()[1];
  }
  const auto [coefficient, symbol] = split_coefficient(rest);
  if (symbol.kind() == SymKind::Symbol && (coefficient == 1 || coefficient == -1) && constant != INT64_MIN) {
    SymRange& range = ranges_.try_emplace(symbol.name(), bounds(symbol)).first->second;
    if (coefficient == 1)
      range.high = std::min(range.high, -constant);
    else
      range.low = std::max(range.low, constant);
  } else if (std::ranges::find(not_positive_, e) == not_positive_.end()) {
    not_positive_.push_back(e);
  }
}

/// By ranges alone, or by those of what remains of e without a term that is assumed to be at most 0.
bool ShapeEnv::is_at_most(SymExpr e, std::int64_t limit) const {
  const auto high = [&](SymExpr sum) { return highest(sum, [&](SymExpr part) { return bounds(part); }); };
  return high(e) <= limit ||
         std::ranges::any_of(not_positive_, [&](SymExpr assumed) { return high(e - assumed) <= limit; });
}

/// Interval arithmetic over the expressions that occur in sizes: symbols, sums with positive coefficients, products,
/// //, min and max.
SymRange ShapeEnv::bounds(SymExpr e) const {
  const SymRange anything{INT64_MIN, unbounded};
  if (e.is_float()) return anything;
  switch (e.kind()) {
    case SymKind::Int:
      return {e.as_int(), e.as_int()};
    case SymKind::Symbol: {
      auto it = ranges_.find(e.name());
      if (it != ranges_.end()) return it->second;
      return e.name()[0] == 's' ? SymRange{2, unbounded} : anything;
    }
    case SymKind::Add: {
      SymRange out{0, 0};
      for (SymExpr a : e.args()) {
        SymRange r = bounds(a);
        out = {sum_of_lows(out.low, r.low), saturating_add(out.high, r.high)};
      }
      return out;
    }
    case SymKind::Mul: {
      if (e.args().size() == 2 && e.args()[0].is_int()) return scaled(bounds(e.args()[1]), e.args()[0].as_int());
      SymRange out{1, 1};
      bool negate = false;
      for (SymExpr a : e.args()) {
        SymRange r = bounds(a);
        if (a.is_int() && a.as_int() < 0 && a.as_int() != INT64_MIN) {
          negate = !negate;
          r = {-a.as_int(), -a.as_int()};
        }
        if (r.low < 0) return anything;
        out = {saturating_mul(out.low, r.low), saturating_mul(out.high, r.high)};
      }
      if (!negate) return out;
      return {out.high == unbounded ? INT64_MIN : -out.high, -out.low};
    }
    case SymKind::FloorDiv: {
      SymRange a = bounds(e.args()[0]), b = bounds(e.args()[1]);
      if (a.low < 0 || b.low <= 0) return anything;
      return {b.high == unbounded ? 0 : a.low / b.high, a.high == unbounded ? unbounded : a.high / b.low};
    }
    case SymKind::Mod: {
      const SymExpr by = e.args()[1];
      SymRange b = bounds(by);
      if (b.low <= 0) return anything;
      // Views ask whether one size is a multiple of its product with others: the smaller is the remainder.
      if (is_polynomial(e.args()[0]) && is_polynomial(by))
        if (const SymRange a = bounds(e.args()[0]);
            a.low >= 0 && highest(e.args()[0] - by, [&](SymExpr part) { return bounds(part); }) < 0)
          return a;
      return {0, b.high == unbounded ? unbounded : b.high - 1};
    }
    case SymKind::Pow: {
      SymRange a = bounds(e.args()[0]);
      if (a.low < 0) return anything;
      return {a.low > 0 ? 1 : 0, unbounded};
    }
    case SymKind::Min:
    case SymKind::Max: {
      SymRange out = bounds(e.args()[0]);
      for (SymExpr a : e.args().subspan(1)) {
        SymRange r = bounds(a);
        if (e.kind() == SymKind::Min)
          out = {std::min(out.low, r.low), std::min(out.high, r.high)};
        else
          out = {std::max(out.low, r.low), std::max(out.high, r.high)};
      }
      return out;
    }
    default:
      return anything;
  }
}

std::optional<bool> ShapeEnv::statically(SymExpr condition) const {
  if (condition.is_int()) return !condition.is(0);
  switch (condition.kind()) {
    case SymKind::And:
    case SymKind::Or: {
      auto a = statically(condition.args()[0]), b = statically(condition.args()[1]);
      bool absorbing = condition.kind() == SymKind::Or;
      if (a == absorbing || b == absorbing) return absorbing;
      if (a && b) return !absorbing;
      return std::nullopt;
    }
    case SymKind::Not: {
      auto a = statically(condition.args()[0]);
      if (a) return !*a;
      return std::nullopt;
    }
    case SymKind::Eq:
    case SymKind::Ne:
    case SymKind::Lt:
    case SymKind::Le: {
      std::lock_guard lock(mutex_);
      const SymExpr a = condition.args()[0], b = condition.args()[1];
      switch (condition.kind()) {
        case SymKind::Lt:
          if (is_at_most(a - b, -1)) return true;
          if (is_at_most(b - a, 0)) return false;
          break;
        case SymKind::Le:
          if (is_at_most(a - b, 0)) return true;
          if (is_at_most(b - a, -1)) return false;
          break;
        default:
          if (is_at_most(a - b, -1) || is_at_most(b - a, -1)) return condition.kind() == SymKind::Ne;
          if (is_at_most(a - b, 0) && is_at_most(b - a, 0)) return condition.kind() == SymKind::Eq;
          break;
      }
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

SymExpr ShapeEnv::simplified(SymExpr e) const {
  return e.rebuilt([this](SymExpr part) { return without_covered(part); });
}

SymExpr ShapeEnv::without_covered(SymExpr e) const {
  constexpr std::size_t most = 8;
  if ((e.kind() != SymKind::Max && e.kind() != SymKind::Min) || e.args().size() > most || e.is_float()) return e;
  std::vector<SymExpr> taken;
  for (SymExpr a : e.args()) {
    const auto covers = [&](SymExpr of, SymExpr by) {
      return statically(e.kind() == SymKind::Max ? sym_le(of, by) : sym_le(by, of)) == true;
    };
    if (std::ranges::any_of(taken, [&](SymExpr other) { return covers(a, other); })) continue;
    std::erase_if(taken, [&](SymExpr other) { return covers(other, a); });
    taken.push_back(a);
  }
  SymExpr out = taken[0];
  for (SymExpr a : std::span(taken).subspan(1)) out = e.kind() == SymKind::Max ? sym_max(out, a) : sym_min(out, a);
  return out;
}

Result<bool> ShapeEnv::evaluate(SymExpr condition, std::string reason) {
  if (auto known = statically(condition)) return *known;
  auto value = hint(condition);
  if (!value)
    return unsupported(
        "sym.data_dependent",
        fmt::format("'{}' ({}) depends on a size known only at run time; give the symbols example values",
                    condition.str(), reason));
  std::lock_guard lock(mutex_);
  SymExpr guard = *value ? condition : sym_not(condition);
  bool known = std::any_of(guards_.begin(), guards_.end(), [&](const Guard& g) { return g.condition == guard; });
  if (!known) guards_.push_back({guard, std::move(reason)});
  return *value != 0;
}

std::optional<std::int64_t> ShapeEnv::hint(SymExpr e) const {
  if (e.is_int()) return e.as_int();
  std::lock_guard lock(mutex_);
  return e.evaluate_integer([&](const std::string& name) -> std::optional<std::int64_t> {
    auto it = hints_.find(name);
    if (it == hints_.end()) return std::nullopt;
    return it->second;
  });
}

}  // namespace partita
