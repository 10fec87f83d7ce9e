// Arithmetic on symbolic expressions: the canonical forms.
#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/sym/integer.h"
#include "core/sym/sign.h"
#include "core/sym/sym_functions.h"
#include "core/sym/sym_node.h"

namespace partita {
namespace {

[[noreturn]] void overflow(std::int64_t a, const char* operation, std::int64_t b) {
  throw Raise{
      input_error("sym.overflow", fmt::format("integer overflow: {} {} {} is beyond 64 bits", a, operation, b))};
}
[[noreturn]] void divided_by_zero() {
  throw Raise{input_error("sym.division", "integer division or modulo by zero")};
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (__builtin_add_overflow(a, b, &out)) overflow(a, "+", b);
  return out;
}
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) overflow(a, "*", b);
  return out;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == -1) return times(a, -1);
  std::int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

/// Total order that does not depend on addresses, so that printing is the same in every run.
std::strong_ordering order(SymExpr a, SymExpr b) {
  if (a == b) return std::strong_ordering::equal;
  if (a.kind() != b.kind()) return a.kind() <=> b.kind();
  switch (a.kind()) {
    case SymKind::Int:
      return a.as_int() <=> b.as_int();
    case SymKind::Float:
      return std::strong_order(a.as_float(), b.as_float());
    case SymKind::Symbol:
      if (a.name().size() != b.name().size()) return a.name().size() <=> b.name().size();
      return a.name() <=> b.name();
    case SymKind::Computed:
      return a.computed_id() <=> b.computed_id();
    default:
      break;
  }
  if (a.kind() == SymKind::Call && a.name() != b.name()) return a.name() <=> b.name();
  return std::lexicographical_compare_three_way(a.args().begin(), a.args().end(), b.args().begin(), b.args().end(),
                                                order);
}

bool before(SymExpr a, SymExpr b) {
  return order(a, b) < 0;
}

struct Before {
  bool operator()(SymExpr a, SymExpr b) const { return before(a, b); }
};

SymExpr scaled(std::int64_t c, SymExpr rest) {
  if (c == 0) return 0;
  if (rest.is_int()) return times(c, rest.as_int());
  if (c == 1) return rest;
  if (rest.kind() == SymKind::Float) return SymExpr::real(static_cast<double>(c) * rest.as_float());
  // A float stands for both numbers: products are made again of their factors, and must then be the same.
  if (rest.kind() == SymKind::Mul && rest.args()[0].kind() == SymKind::Float) {
    std::vector<SymExpr> same{rest.args().begin(), rest.args().end()};
    same[0] = SymExpr::real(static_cast<double>(c) * same[0].as_float());
    return SymBuilder::make(SymKind::Mul, std::move(same));
  }
  std::vector<SymExpr> factors{SymExpr(c)};
  if (rest.kind() == SymKind::Mul)
    factors.insert(factors.end(), rest.args().begin(), rest.args().end());
  else
    factors.push_back(rest);
  return SymBuilder::make(SymKind::Mul, std::move(factors));
}

}  // namespace

std::pair<std::int64_t, SymExpr> split_coefficient(SymExpr e) {
  if (e.is_int()) return {e.as_int(), SymExpr(1)};
  if (e.kind() == SymKind::Mul && e.args()[0].is_int()) {
    auto rest = e.args().subspan(1);
    if (rest.size() == 1) return {e.args()[0].as_int(), rest[0]};
    return {e.args()[0].as_int(), SymBuilder::make(SymKind::Mul, {rest.begin(), rest.end()})};
  }
  if (e.kind() == SymKind::Mul && e.args()[0].kind() == SymKind::Float && std::signbit(e.args()[0].as_float()))
    return {-1, scaled(-1, e)};
  return {1, e};
}

SymExpr sym_sum(std::span<const SymExpr> terms) {
  std::map<SymExpr, std::int64_t, Before> coefficients;
  std::int64_t constant = 0;
  std::optional<double> real;
  auto add = [&](auto&& self, SymExpr e) -> void {
    if (e.is_int()) {
      constant = sum(constant, e.as_int());
    } else if (e.kind() == SymKind::Float) {
      real = real.value_or(0) + e.as_float();
    } else if (e.kind() == SymKind::Add) {
      for (SymExpr a : e.args()) self(self, a);
    } else {
      auto [c, rest] = split_coefficient(e);
      std::int64_t& coefficient = coefficients[rest];
      coefficient = sum(coefficient, c);
    }
  };
  for (SymExpr e : terms) add(add, e);
  std::vector<SymExpr> out;
  for (auto& [rest, c] : coefficients)
    if (c != 0) out.push_back(scaled(c, rest));
  if (real)
    out.push_back(SymExpr::real(*real + static_cast<double>(constant)));
  else if (constant != 0)
    out.push_back(constant);
  if (out.empty()) return 0;
  return out.size() == 1 ? out[0] : SymBuilder::make(SymKind::Add, std::move(out));
}

namespace {

void collect_factors(SymExpr e, std::int64_t& coefficient, std::map<SymExpr, std::int64_t, Before>& powers) {
  if (e.is_int()) {
    coefficient = times(coefficient, e.as_int());
  } else if (e.kind() == SymKind::Mul) {
    for (SymExpr a : e.args()) collect_factors(a, coefficient, powers);
  } else if (e.kind() == SymKind::Pow && e.args()[1].is_int()) {
    std::int64_t& exponent = powers[e.args()[0]];
    exponent = sum(exponent, e.args()[1].as_int());
  } else {
    std::int64_t& exponent = powers[e];
    exponent = sum(exponent, 1);
  }
}

/// The product of factors that are no sums. Numbers among them become one, a float if one of them is.
SymExpr monomial(std::span<const SymExpr> of) {
  std::int64_t coefficient = 1;
  std::map<SymExpr, std::int64_t, Before> powers;
  for (SymExpr f : of) collect_factors(f, coefficient, powers);
  std::vector<SymExpr> factors;
  std::optional<double> real;
  for (auto& [base, n] : powers) {
    if (base.kind() == SymKind::Float)
      real = real.value_or(1) * std::pow(base.as_float(), static_cast<double>(n));
    else if (n == 1)
      factors.push_back(base);
    else if (n != 0)
      factors.push_back(SymBuilder::make(SymKind::Pow, {base, SymExpr(n)}));
  }
  if (real) {
    const SymExpr number = SymExpr::real(*real * static_cast<double>(coefficient));
    if (factors.empty()) return number;
    factors.insert(factors.begin(), number);
    return SymBuilder::make(SymKind::Mul, std::move(factors));
  }
  if (factors.empty()) return coefficient;
  SymExpr rest = factors.size() == 1 ? factors[0] : SymBuilder::make(SymKind::Mul, std::move(factors));
  return scaled(coefficient, rest);
}

SymExpr multiply(SymExpr a, SymExpr b) {
  if (a.is_int() && b.is_int()) return times(a.as_int(), b.as_int());
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  auto number = [](SymExpr e) -> std::optional<double> {
    if (e.is_int()) return static_cast<double>(e.as_int());
    return e.kind() == SymKind::Float ? std::optional(e.as_float()) : std::nullopt;
  };
  if (const auto x = number(a), y = number(b); x && y) return SymExpr::real(*x * *y);
  if (a.kind() != SymKind::Add) std::swap(a, b);
  if (a.kind() == SymKind::Add) {
    std::vector<SymExpr> terms;
    for (SymExpr t : a.args()) terms.push_back(multiply(t, b));
    return sym_sum(terms);
  }
  return monomial(std::array{a, b});
}

/// The quotient e / d if it is exact: every term of e has an integer coefficient divisible by d, or d is one of its
/// factors.
std::optional<SymExpr> exact_quotient(SymExpr e, SymExpr d) {
  if (e == d) return SymExpr(1);
  if (e.is(0)) return SymExpr(0);
  if (e.kind() == SymKind::Add) {
    std::vector<SymExpr> terms;
    for (SymExpr t : e.args()) {
      auto q = exact_quotient(t, d);
      if (!q) return std::nullopt;
      terms.push_back(*q);
    }
    return sym_sum(terms);
  }
  std::int64_t c = 1, k = 1;
  std::map<SymExpr, std::int64_t, Before> have, want;
  collect_factors(e, c, have);
  collect_factors(d, k, want);
  if (k == 0 || (k != -1 && c % k != 0)) return std::nullopt;
  for (auto& [base, n] : want) {
    auto it = have.find(base);
    if (it == have.end() || it->second < n) return std::nullopt;
    it->second -= n;
  }
  SymExpr q = floor_div(c, k);
  for (auto& [base, n] : have) q = multiply(q, sym_pow(base, n));
  return q;
}

/// A common divisor of all terms of e and d: an integer times powers of shared factors.
SymExpr common_factor(SymExpr e, SymExpr d) {
  std::int64_t number = 0;
  std::map<SymExpr, std::int64_t, Before> shared;
  bool first = true;
  auto meet = [&](SymExpr term) {
    std::int64_t c = 1;
    std::map<SymExpr, std::int64_t, Before> powers;
    collect_factors(term, c, powers);
    number = std::gcd(number, c);
    if (first) shared = powers;
    first = false;
    for (auto& [base, n] : shared) {
      auto it = powers.find(base);
      n = it == powers.end() ? 0 : std::min(n, it->second);
    }
  };
  for (SymExpr side : {d, e}) {
    if (side.kind() == SymKind::Add)
      std::ranges::for_each(side.args(), meet);
    else
      meet(side);
  }
  SymExpr out = number;
  for (auto& [base, n] : shared)
    if (n > 0) out = multiply(out, sym_pow(base, n));
  return out;
}

/// The greater of c*x and k*x if x >= 0 is known: the one with the greater coefficient. nullopt for other pairs.
std::optional<SymExpr> greater_multiple(SymExpr a, SymExpr b) {
  auto [c, x] = split_coefficient(a);
  auto [k, y] = split_coefficient(b);
  if (x != y || x.is_int() || !sign_of(x, Symbols::Integers).nonnegative) return std::nullopt;
  return c > k ? a : b;
}

SymExpr extremum(SymKind kind, SymExpr a, SymExpr b, auto pick) {
  if (a.is_int() && b.is_int()) return pick(a.as_int(), b.as_int());
  std::set<SymExpr, Before> args;
  for (SymExpr e : {a, b}) {
    if (e.kind() == kind)
      args.insert(e.args().begin(), e.args().end());
    else
      args.insert(e);
  }
  std::optional<std::int64_t> constant;
  std::vector<SymExpr> out;
  for (SymExpr e : args) {
    if (e.is_int())
      constant = constant ? pick(*constant, e.as_int()) : e.as_int();
    else
      out.push_back(e);
  }
  const bool greatest = kind == SymKind::Max;
  if (constant && out.size() == 1) {
    const Sign sign = sign_of(out[0], Symbols::Integers);
    if ((*constant == 0 && sign.nonnegative) || (*constant == 1 && sign.positive)) return greatest ? out[0] : *constant;
  }
  if (!constant && out.size() == 2)
    if (auto greater = greater_multiple(out[0], out[1])) return (*greater == out[0]) == greatest ? out[0] : out[1];
  if (constant) out.insert(out.begin(), SymExpr(*constant));
  return out.size() == 1 ? out[0] : SymBuilder::make(kind, std::move(out));
}

/// Folds the comparison when the difference is a constant: s0 + 1 == s0 + 1 and s0 < s0 + 2 are true.
SymExpr compare(SymKind kind, SymExpr a, SymExpr b) {
  const bool numbers = a.is_int() && b.is_int();
  const SymExpr left = numbers ? a : a - b, right = numbers ? b : SymExpr(0);
  if (left.is_int()) {
    const std::int64_t x = left.as_int(), y = right.as_int();
    switch (kind) {
      case SymKind::Eq:
        return x == y;
      case SymKind::Ne:
        return x != y;
      case SymKind::Lt:
        return x < y;
      default:
        return x <= y;
    }
  }
  if ((kind == SymKind::Eq || kind == SymKind::Ne) && before(b, a)) std::swap(a, b);
  return SymBuilder::make(kind, {a, b});
}

}  // namespace

SymExpr operator+(SymExpr a, SymExpr b) {
  if (a.is_int() && b.is_int()) return sum(a.value_, b.value_);
  return sym_sum(std::array{a, b});
}

SymExpr operator-(SymExpr a) {
  return multiply(-1, a);
}
SymExpr operator-(SymExpr a, SymExpr b) {
  return a + -b;
}
SymExpr operator*(SymExpr a, SymExpr b) {
  return multiply(a, b);
}

SymExpr sym_floordiv(SymExpr a, SymExpr b) {
  if (b.is(0)) divided_by_zero();
  if (a.is_int() && b.is_int()) return floor_div(a.as_int(), b.as_int());
  if (a.is_float() || b.is_float()) return SymBuilder::make(SymKind::FloorDiv, {a, b});
  if (b.is(1)) return a;
  if (auto q = exact_quotient(a, b)) return *q;
  if (a.kind() == SymKind::Add) {
    std::vector<SymExpr> whole, rest;
    for (SymExpr t : a.args()) {
      if (auto q = exact_quotient(t, b))
        whole.push_back(*q);
      else
        rest.push_back(t);
    }
    if (!whole.empty()) return sym_sum(whole) + sym_floordiv(sym_sum(rest), b);
  }
  if (a.kind() == SymKind::FloorDiv && sign_of(b, Symbols::Integers).positive)
    return sym_floordiv(a.args()[0], a.args()[1] * b);
  if (SymExpr shared = common_factor(a, b); !shared.is(1))
    return sym_floordiv(*exact_quotient(a, shared), *exact_quotient(b, shared));
  return SymBuilder::make(SymKind::FloorDiv, {a, b});
}

SymExpr sym_mod(SymExpr a, SymExpr b) {
  if (b.is(0)) divided_by_zero();
  if (a.is_int() && b.is_int()) {
    const std::int64_t x = a.as_int(), y = b.as_int(), rest = y == -1 ? 0 : x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
  if (a.is_float() || b.is_float()) return SymBuilder::make(SymKind::Mod, {a, b});
  if (b.is(1) || exact_quotient(a, b)) return 0;
  if (a.kind() == SymKind::Add) {
    std::vector<SymExpr> rest;
    for (SymExpr t : a.args())
      if (!exact_quotient(t, b)) rest.push_back(t);
    if (rest.size() < a.args().size()) return sym_mod(sym_sum(rest), b);
  }
  return SymBuilder::make(SymKind::Mod, {a, b});
}

SymExpr sym_truediv(SymExpr a, SymExpr b) {
  if (a.is_int() && b.is_int() && !b.is(0))
    return SymExpr::real(static_cast<double>(a.as_int()) / static_cast<double>(b.as_int()));
  return SymBuilder::make(SymKind::TrueDiv, {a, b});
}

SymExpr sym_pow(SymExpr base, SymExpr exponent) {
  if (exponent.is_int() && exponent.as_int() >= 0 && (base.is_int() || exponent.as_int() <= 8)) {
    if (base.is(0) || base.is(1)) return exponent.is(0) ? SymExpr(1) : base;
    if (base.is(-1)) return exponent.as_int() % 2 == 0 ? 1 : -1;
    SymExpr out = 1;  // other bases overflow within 63 steps
    for (std::int64_t i = 0; i < exponent.as_int(); ++i) out = out * base;
    return out;
  }
  if (base.is_int() && exponent.is_int() && !base.is(0))
    return SymExpr::real(std::pow(static_cast<double>(base.as_int()), static_cast<double>(exponent.as_int())));
  return SymBuilder::make(SymKind::Pow, {base, exponent});
}

SymExpr sym_min(SymExpr a, SymExpr b) {
  return extremum(SymKind::Min, a, b, [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
}

SymExpr sym_max(SymExpr a, SymExpr b) {
  return extremum(SymKind::Max, a, b, [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
}

SymExpr sym_eq(SymExpr a, SymExpr b) {
  return compare(SymKind::Eq, a, b);
}
SymExpr sym_ne(SymExpr a, SymExpr b) {
  return compare(SymKind::Ne, a, b);
}
SymExpr sym_lt(SymExpr a, SymExpr b) {
  return compare(SymKind::Lt, a, b);
}
SymExpr sym_le(SymExpr a, SymExpr b) {
  return compare(SymKind::Le, a, b);
}

SymExpr sym_and(SymExpr a, SymExpr b) {
  if (a.is_int()) return a.is(0) ? SymExpr(0) : b;
  if (b.is_int()) return b.is(0) ? SymExpr(0) : a;
  return a == b ? a : SymBuilder::make(SymKind::And, {a, b});
}

SymExpr sym_or(SymExpr a, SymExpr b) {
  if (a.is_int()) return a.is(0) ? b : SymExpr(1);
  if (b.is_int()) return b.is(0) ? a : SymExpr(1);
  return a == b ? a : SymBuilder::make(SymKind::Or, {a, b});
}

SymExpr sym_not(SymExpr a) {
  if (a.is_int()) return a.is(0);
  switch (a.kind()) {
    case SymKind::Not:
      return a.args()[0];
    case SymKind::Eq:
      return sym_ne(a.args()[0], a.args()[1]);
    case SymKind::Ne:
      return sym_eq(a.args()[0], a.args()[1]);
    case SymKind::Lt:
      return sym_le(a.args()[1], a.args()[0]);
    case SymKind::Le:
      return sym_lt(a.args()[1], a.args()[0]);
    default:
      return SymBuilder::make(SymKind::Not, {a});
  }
}

SymExpr sym_call(std::string_view function, std::vector<SymExpr> args) {
  const SymFunction* known = find_sym_function(function);
  if (known && known->arguments != args.size()) known = nullptr;
  if (known && known->result == SymFunction::Result::Rounded && !args[0].is_float()) return args[0];
  if (known && function == "Where" && args[0].is_int()) return args[0].is(0) ? args[2] : args[1];
  std::vector<double> values;
  bool real = known && known->result == SymFunction::Result::Float;
  for (SymExpr a : args) {
    if (a.is_int()) values.push_back(static_cast<double>(a.as_int()));
    if (a.kind() == SymKind::Float) values.push_back(a.as_float());
    real |= known && known->result == SymFunction::Result::AsArguments && a.is_float();
  }
  if (known && values.size() == args.size()) {
    const double value = known->value(values);
    if (real) return SymExpr::real(value);
    if (const auto whole = as_integer(value); whole && std::abs(value) < 0x1p53) return *whole;
  }
  return SymBuilder::make(SymKind::Call, std::move(args), std::string(function));
}

SymExpr product(std::span<const SymExpr> factors) {
  // Floats are rounded one after the other. Other factors may be taken in any order: sums last.
  const bool floats = std::ranges::any_of(factors, [](SymExpr f) { return f.kind() == SymKind::Float; });
  std::vector<SymExpr> whole, rest;
  SymExpr out = 1;
  for (SymExpr f : factors) {
    if (f.is_int() && whole.empty() && rest.empty())
      out = out * f;
    else
      (floats || f.kind() == SymKind::Add ? rest : whole).push_back(f);
  }
  if (!whole.empty()) {
    whole.push_back(out);
    out = monomial(whole);
  }
  for (SymExpr f : rest) out = out * f;
  return out;
}

SymExpr at_least_one(SymExpr size) {
  return sign_of(size, Symbols::Sizes).positive ? size : sym_max(1, size);
}

SymList contiguous_strides(std::span<const SymExpr> sizes) {
  SymList strides(sizes.size());
  SymExpr step = 1;
  for (std::size_t i = sizes.size(); i > 0; --i) {
    strides[i - 1] = step;
    step = step * at_least_one(sizes[i - 1]);
  }
  return strides;
}

std::optional<std::vector<std::int64_t>> concrete(std::span<const SymExpr> list) {
  std::vector<std::int64_t> out;
  for (SymExpr e : list) {
    if (!e.is_int()) return std::nullopt;
    out.push_back(e.as_int());
  }
  return out;
}

}  // namespace partita
