// Simplifies index expressions by ranges of variables and common factors, and joins digits such as x // 4 and x % 4.
// Divisors are numbers here; index_sizes.cpp divides by expressions of sizes.
#include "core/loops/index.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/check.h"

namespace partita::loops {
namespace {

using std::int64_t;

constexpr int64_t smallest_size = 2;

/// coefficient * base; the constant term has base 1.
struct Term {
  int64_t coefficient;
  SymExpr base;
};

Term split(SymExpr e) {
  if (e.is_int()) return {e.as_int(), 1};
  if (e.kind() != SymKind::Mul) return {1, e};
  int64_t coefficient = 1;
  SymExpr base = 1;
  for (SymExpr a : e.args()) {
    if (a.is_int())
      coefficient *= a.as_int();
    else
      base = base * a;
  }
  return {coefficient, base};
}

std::vector<Term> terms(SymExpr e) {
  std::vector<Term> out;
  if (!e.is_int() && e.kind() == SymKind::Add)
    for (SymExpr a : e.args()) out.push_back(split(a));
  else
    out.push_back(split(e));
  return out;
}

SymExpr join(const std::vector<Term>& list) {
  SymExpr sum = 0;
  for (const Term& t : list) sum = sum + t.base * t.coefficient;
  return sum;
}

/// The parts of FloorDiv(a, c) or Mod(a, c) with a concrete c.
struct Quotient {
  SymExpr dividend;
  int64_t divisor;
};
std::optional<Quotient> as(SymKind kind, SymExpr e) {
  if (e.is_int() || e.kind() != kind || !e.args()[1].is_int()) return std::nullopt;
  return Quotient{e.args()[0], e.args()[1].as_int()};
}

int64_t floor_div(int64_t a, int64_t c) {
  return a / c - (a % c < 0);
}

int64_t saturated(__int128 v) {
  constexpr auto low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  return v < low ? low : v > high ? high : static_cast<int64_t>(v);
}

}  // namespace

bool contains(SymExpr e, SymExpr variable) {
  if (e == variable) return true;
  if (e.is_int() || e.kind() == SymKind::Symbol) return false;
  return std::ranges::any_of(e.args(), [&](SymExpr a) { return contains(a, variable); });
}

SymExpr IndexMath::variable(const std::string& name, SymExpr extent) {
  const SymExpr symbol = SymExpr::symbol(name);
  extents_[symbol] = extent;
  symbolic_ |= !extent.is_int();
  return symbol;
}

Index IndexMath::variables(const std::string& prefix, const SymList& sizes) {
  Index index;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    index.push_back(sizes[i] == 1 ? SymExpr(0) : variable(prefix + std::to_string(i), sizes[i]));
  return index;
}

SymExpr IndexMath::computed(int scalar, SymExpr extent) {
  const SymExpr term = SymExpr::computed(scalar);
  extents_[term] = extent;
  symbolic_ |= !extent.is_int();
  return term;
}

/// The smallest and largest value that e can take, as far as they are numbers.
std::pair<int64_t, int64_t> IndexMath::bounds(SymExpr e) const {
  constexpr std::pair<int64_t, int64_t> unknown{std::numeric_limits<int64_t>::min(),
                                                std::numeric_limits<int64_t>::max()};
  if (e.is_int()) return {e.as_int(), e.as_int()};
  switch (e.kind()) {
    case SymKind::Symbol:
    case SymKind::Computed: {
      auto it = extents_.find(e);
      if (it == extents_.end()) return e.kind() == SymKind::Symbol ? std::pair{smallest_size, unknown.second} : unknown;
      if (!it->second.is_int()) return {0, unknown.second};
      return {0, std::max<int64_t>(it->second.as_int() - 1, 0)};
    }
    case SymKind::Add: {
      __int128 low = 0, high = 0;
      for (SymExpr a : e.args()) {
        auto [l, h] = bounds(a);
        low += l;
        high += h;
      }
      return {saturated(low), saturated(high)};
    }
    case SymKind::Mul: {
      __int128 low = 1, high = 1;
      for (SymExpr a : e.args()) {
        auto [l, h] = bounds(a);
        __int128 corners[] = {saturated(low) * __int128{l}, saturated(low) * __int128{h}, saturated(high) * __int128{l},
                              saturated(high) * __int128{h}};
        low = *std::ranges::min_element(corners);
        high = *std::ranges::max_element(corners);
      }
      return {saturated(low), saturated(high)};
    }
    case SymKind::FloorDiv:
      if (auto q = as(SymKind::FloorDiv, e)) {
        auto [l, h] = bounds(q->dividend);
        return {floor_div(l, q->divisor), floor_div(h, q->divisor)};
      }
      return unknown;
    case SymKind::Mod:
      if (auto q = as(SymKind::Mod, e)) return {0, q->divisor - 1};
      return unknown;
    case SymKind::Min:
    case SymKind::Max: {
      auto [low, high] = bounds(e.args()[0]);
      for (SymExpr a : e.args().subspan(1)) {
        auto [l, h] = bounds(a);
        low = e.kind() == SymKind::Min ? std::min(low, l) : std::max(low, l);
        high = e.kind() == SymKind::Min ? std::min(high, h) : std::max(high, h);
      }
      return {low, high};
    }
    default:
      return unknown;
  }
}

SymExpr IndexMath::simplify(SymExpr e) const {
  if (e.is_int() || e.kind() != SymKind::Add) return e;
  std::vector<Term> list = terms(e);
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto low = as(SymKind::Mod, list[i].base);
    if (!low) continue;
    SymExpr above = floordiv(low->dividend, low->divisor);
    for (std::size_t j = 0; j < list.size(); ++j) {
      if (j == i || list[j].coefficient != list[i].coefficient * low->divisor) continue;
      auto high = as(SymKind::Mod, list[j].base);
      SymExpr whole;
      if (list[j].base == above)
        whole = low->dividend;
      else if (high && high->dividend == above)
        whole = mod(low->dividend, low->divisor * high->divisor);
      else
        continue;
      int64_t coefficient = list[i].coefficient;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      return simplify(join(list) + whole * coefficient);
    }
  }
  if (symbolic_)
    if (auto shorter = joined(e)) return simplify(*shorter);
  return e;
}

SymExpr IndexMath::floordiv(SymExpr a, SymExpr by) const {
  if (!by.is_int()) return divided(simplify(a), by);
  const int64_t c = by.as_int();
  CHECK(c != 0 && c != INT64_MIN, "index division by " + std::to_string(c));
  if (c < 0) return floordiv(-a, -c);
  a = simplify(a);
  if (c == 1) return a;
  if (a.is_int()) return floor_div(a.as_int(), c);
  std::vector<Term> whole, rest;
  for (Term t : terms(a)) {
    // Split a constant into a multiple of c and the remainder.
    if (t.base.is_int() && t.coefficient % c != 0) {
      int64_t q = floor_div(t.coefficient, c);
      if (q != 0) whole.push_back({q * c, 1});
      rest.push_back({t.coefficient - q * c, 1});
      continue;
    }
    (t.coefficient % c == 0 ? whole : rest).push_back(t);
  }
  for (Term& t : whole) t.coefficient /= c;
  SymExpr quotient = join(whole);
  if (rest.empty()) return quotient;
  SymExpr remaining = join(rest);
  if (within(remaining, c)) return quotient;

  // (g*x + r) // (g*c') = x // c' for 0 <= r < g
  int64_t g = c;
  for (const Term& t : rest)
    if (!t.base.is_int()) g = std::gcd(g, t.coefficient);
  if (g > 1) {
    SymExpr reduced = 0;
    for (const Term& t : rest)
      reduced = reduced + (t.base.is_int() ? SymExpr(t.coefficient / g) : t.base * (t.coefficient / g));
    return quotient + floordiv(reduced, c / g);
  }
  if (rest.size() == 1 && rest[0].coefficient == 1) {
    if (auto q = as(SymKind::FloorDiv, rest[0].base)) return quotient + floordiv(q->dividend, q->divisor * c);
    if (auto q = as(SymKind::Mod, rest[0].base); q && q->divisor % c == 0)
      return quotient + mod(floordiv(q->dividend, c), q->divisor / c);
  }
  return quotient + sym_floordiv(remaining, c);
}

SymExpr IndexMath::mod(SymExpr a, SymExpr by) const {
  if (!by.is_int()) return remainder(simplify(a), by);
  const int64_t c = by.as_int();
  CHECK(c != 0 && c != INT64_MIN, "index remainder by " + std::to_string(c));
  if (c < 0) return -mod(-a, -c);  // has the sign of the divisor
  a = simplify(a);
  if (c == 1) return 0;
  std::vector<Term> rest;
  for (Term t : terms(a)) {
    if (t.base.is_int()) t.coefficient -= floor_div(t.coefficient, c) * c;
    if (t.coefficient % c != 0) rest.push_back(t);
  }
  if (rest.empty()) return 0;
  SymExpr remaining = join(rest);
  if (within(remaining, c)) return remaining;
  int64_t g = c;
  for (const Term& t : rest) g = std::gcd(g, t.coefficient);
  if (g > 1) {
    for (Term& t : rest) t.coefficient /= g;
    return mod(join(rest), c / g) * g;
  }
  if (rest.size() == 1 && rest[0].coefficient == 1)
    if (auto q = as(SymKind::Mod, rest[0].base); q && q->divisor % c == 0) return mod(q->dividend, c);
  return sym_mod(remaining, c);
}

SymExpr IndexMath::linear(const Index& index, const SymList& sizes) const {
  // Where a size is 0 there is no index, so that strides need no Max(1, n), of which layouts would not be known again.
  SymList strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * (sizes[i].is(0) ? SymExpr(1) : sizes[i]);
  return element(index, strides);
}

Index IndexMath::delinearize(SymExpr linear, const SymList& sizes) const {
  Index index(sizes.size(), 0);
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const SymExpr size = sizes[i].is(0) ? SymExpr(1) : sizes[i];
    // The first dimension of size > 1 takes the whole remainder, which is in range by construction, so it needs no mod.
    bool first =
        std::all_of(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), [](SymExpr s) { return s.is(1); });
    index[i] = size.is(1) ? SymExpr(0) : first ? linear : mod(linear, size);
    linear = floordiv(linear, size);
  }
  return index;
}

SymExpr IndexMath::element(const Index& index, const SymList& strides) const {
  CHECK(index.size() == strides.size(), "an index of the wrong rank");
  SymExpr sum = 0;
  for (std::size_t i = 0; i < index.size(); ++i) sum = sum + index[i] * strides[i];
  return simplify(sum);
}

}  // namespace partita::loops
