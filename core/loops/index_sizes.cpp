// Index arithmetic with symbolic sizes: proofs of ranges, and division by an expression of sizes.
#include <algorithm>

#include "core/loops/index.h"

namespace partita::loops {
namespace {

std::vector<SymExpr> parts(SymKind kind, SymExpr e) {
  if (!e.is_int() && e.kind() == kind) return {e.args().begin(), e.args().end()};
  return {e};
}
std::vector<SymExpr> summands(SymExpr e) {
  return parts(SymKind::Add, e);
}

/// The factors of a product, with powers written out.
std::vector<SymExpr> factors(SymExpr e) {
  std::vector<SymExpr> out;
  for (SymExpr f : parts(SymKind::Mul, e)) {
    const bool power = !f.is_int() && f.kind() == SymKind::Pow && f.args()[1].is_int() && f.args()[1].as_int() > 0 &&
                       f.args()[1].as_int() < 16;
    out.insert(out.end(), power ? static_cast<std::size_t>(f.args()[1].as_int()) : 1, power ? f.args()[0] : f);
  }
  return out;
}

/// One product divided by another.
std::optional<SymExpr> quotient_of_products(SymExpr p, SymExpr c) {
  std::vector<SymExpr> left = factors(p);
  std::int64_t number = 1, by = 1;
  for (SymExpr f : factors(c)) {
    if (f.is_int()) {
      by = f.as_int();
      continue;
    }
    const auto it = std::ranges::find(left, f);
    if (it == left.end()) return std::nullopt;
    left.erase(it);
  }
  SymExpr rest = 1;
  for (SymExpr f : left) {
    if (f.is_int())
      number = f.as_int();
    else
      rest = rest * f;
  }
  if (number % by != 0) return std::nullopt;
  return rest * SymExpr(number / by);
}

bool is_non_negative_atom(SymExpr e) {
  switch (e.kind()) {
    case SymKind::Symbol:
      return true;
    case SymKind::Pow:
      return is_non_negative_atom(e.args()[0]);
    case SymKind::FloorDiv:
      return sizes_non_negative(e.args()[0]) && sizes_non_negative(e.args()[1] - 1);
    case SymKind::Mod:
      return sizes_non_negative(e.args()[1] - 1);
    case SymKind::Max:
      return std::ranges::any_of(e.args(), sizes_non_negative);
    case SymKind::Min:
      return std::ranges::all_of(e.args(), sizes_non_negative);
    default:
      return false;
  }
}

/// An expression that is at most e: where e subtracts c * (a // c), it subtracts a, which is no smaller.
SymExpr without_quotients(SymExpr e) {
  SymExpr sum = 0;
  for (SymExpr term : summands(e)) {
    std::int64_t number = 1;
    SymExpr quotient = 0, others = 1;
    for (SymExpr f : parts(SymKind::Mul, term)) {
      if (f.is_int())
        number = f.as_int();
      else if (f.kind() == SymKind::FloorDiv && quotient.is(0))
        quotient = f;
      else
        others = others * f;
    }
    const std::int64_t by = quotient.is(0) || !quotient.args()[1].is_int() ? 0 : quotient.args()[1].as_int();
    const bool less = number < 0 && by > 0 && number % by == 0 && sizes_non_negative(others);
    sum = sum + (less ? SymExpr(number / by) * quotient.args()[0] * others : term);
  }
  return sum;
}

}  // namespace

bool sizes_non_negative(SymExpr e) {
  if (e.is_int()) return e.as_int() >= 0;
  if (const SymExpr least = without_quotients(e); least != e && sizes_non_negative(least)) return true;
  // With n + 2 for each size, all coefficients are positive where the polynomial grows from n = 0 on.
  const SymExpr shifted = e.substitute([](const std::string& name) { return SymExpr::symbol(name) + 2; });
  return std::ranges::all_of(summands(shifted), [](SymExpr term) {
    return std::ranges::all_of(parts(SymKind::Mul, term),
                               [](SymExpr f) { return f.is_int() ? f.as_int() >= 0 : is_non_negative_atom(f); });
  });
}

std::optional<SymExpr> exact_quotient(SymExpr p, SymExpr c) {
  if (p.is(0)) return SymExpr(0);
  if (p == c) return SymExpr(1);
  const std::vector<SymExpr> of = summands(p), by = summands(c);
  if (by.size() == 1) {
    SymExpr sum = 0;
    for (SymExpr term : of) {
      const auto q = quotient_of_products(term, c);
      if (!q) return std::nullopt;
      sum = sum + *q;
    }
    return sum;
  }
  for (SymExpr term : of)
    if (const auto q = quotient_of_products(term, by[0]); q && *q * c == p) return q;
  return std::nullopt;
}

bool IndexMath::is_size(SymExpr e) const {
  if (e.is_int()) return true;
  if (e.kind() == SymKind::Computed) return false;
  if (e.kind() == SymKind::Symbol) return !extents_.contains(e);
  return std::ranges::all_of(e.args(), [&](SymExpr a) { return is_size(a); });
}

/// The smallest or largest value of e for any values of its variables, as an expression of sizes; nullopt: not known.
std::optional<SymExpr> IndexMath::extreme(SymExpr e, bool highest) const {
  if (is_size(e)) return e;
  switch (e.kind()) {
    case SymKind::Symbol:
    case SymKind::Computed: {
      const auto it = extents_.find(e);
      if (it == extents_.end()) return std::nullopt;
      return highest ? it->second - 1 : SymExpr(0);
    }
    case SymKind::Add: {
      SymExpr sum = 0;
      for (SymExpr a : e.args()) {
        const auto bound = extreme(a, highest);
        if (!bound) return std::nullopt;
        sum = sum + *bound;
      }
      return sum;
    }
    case SymKind::Mul: {
      std::int64_t number = 1;
      for (SymExpr f : e.args())
        if (f.is_int()) number = f.as_int();
      SymExpr product = number;
      for (SymExpr f : e.args()) {
        if (f.is_int()) continue;
        const auto low = extreme(f, false), bound = extreme(f, highest == (number >= 0));
        if (!low || !bound || !sizes_non_negative(*low)) return std::nullopt;
        product = product * *bound;
      }
      return product;
    }
    case SymKind::FloorDiv: {
      const auto bound = extreme(e.args()[0], highest);
      if (!bound || !is_size(e.args()[1]) || !sizes_non_negative(e.args()[1] - 1)) return std::nullopt;
      return floordiv(*bound, e.args()[1]);
    }
    case SymKind::Mod:
      if (!is_size(e.args()[1]) || !sizes_non_negative(e.args()[1] - 1)) return std::nullopt;
      return highest ? e.args()[1] - 1 : SymExpr(0);
    case SymKind::Min:
    case SymKind::Max: {
      // Any of the arguments bounds it on one side.
      const bool any = (e.kind() == SymKind::Min) == highest;
      for (SymExpr a : e.args())
        if (any && is_size(a)) return a;
      std::optional<SymExpr> all;
      for (SymExpr a : e.args()) {
        const auto bound = extreme(a, highest);
        if (bound && any) return bound;
        if (any) continue;
        if (!bound) return std::nullopt;
        all = !all ? *bound : e.kind() == SymKind::Min ? sym_min(*all, *bound) : sym_max(*all, *bound);
      }
      return all;
    }
    default:
      return std::nullopt;
  }
}

bool IndexMath::non_negative(SymExpr e) const {
  if (bounds(e).first >= 0) return true;
  if (e.is_int()) return false;
  const auto low = extreme(e, false);
  return low && sizes_non_negative(*low);
}

bool IndexMath::within(SymExpr e, SymExpr size) const {
  if (size.is_int()) {
    const auto [low, high] = bounds(e);
    if (low >= 0 && high < size.as_int()) return true;
    if (!symbolic_) return false;
  }
  return non_negative(e) && non_negative(size - 1 - e);
}

/// Takes the terms of `a` that are multiples of c, or whose sizes are, out of it.
IndexMath::Split IndexMath::split(SymExpr a, SymExpr c) const {
  // The factors of each variable part.
  std::vector<std::pair<SymExpr, SymExpr>> coefficients;
  for (SymExpr term : summands(a)) {
    SymExpr sizes = 1, variables = 1;
    for (SymExpr f : parts(SymKind::Mul, term)) (is_size(f) ? sizes : variables) = (is_size(f) ? sizes : variables) * f;
    const auto it = std::ranges::find(coefficients, variables, &std::pair<SymExpr, SymExpr>::first);
    if (it == coefficients.end())
      coefficients.emplace_back(variables, sizes);
    else
      it->second = it->second + sizes;
  }
  Split out{0, 0};
  for (const auto& [variables, sizes] : coefficients) {
    if (const auto q = exact_quotient(sizes, c)) {
      out.whole = out.whole + variables * *q;
      continue;
    }
    for (SymExpr term : summands(sizes)) {
      if (const auto q = exact_quotient(term, c))
        out.whole = out.whole + variables * *q;
      else
        out.rest = out.rest + variables * term;
    }
  }
  return out;
}

/// A factor g of c with rest = g * x + r, 0 <= r < g and x not 0.
std::optional<SymExpr> IndexMath::common_factor(SymExpr rest, SymExpr c) const {
  if (!c.is_int() && c.kind() == SymKind::Add) return std::nullopt;
  std::vector<SymExpr> tried = factors(c);
  std::erase_if(tried, [](SymExpr f) { return f.is_int(); });
  if (tried.size() > 1) tried.insert(tried.begin(), product(tried));
  for (SymExpr g : tried) {
    const Split s = split(rest, g);
    if (g != c && !s.whole.is(0) && within(s.rest, g)) return g;
  }
  return std::nullopt;
}

SymExpr IndexMath::divided(SymExpr a, SymExpr c) const {
  const auto [whole, rest] = split(a, c);
  if (rest.is(0) || within(rest, c)) return whole;
  if (non_negative(rest + c) && non_negative(-1 - rest)) return whole - 1;
  if (const auto g = common_factor(rest, c)) return whole + floordiv(split(rest, *g).whole, *exact_quotient(c, *g));
  if (rest.kind() == SymKind::FloorDiv && is_size(rest.args()[1]))
    return whole + floordiv(rest.args()[0], rest.args()[1] * c);
  if (rest.kind() == SymKind::Mod)
    if (const auto q = exact_quotient(rest.args()[1], c)) return whole + mod(floordiv(rest.args()[0], c), *q);
  return whole + sym_floordiv(rest, c);
}

SymExpr IndexMath::remainder(SymExpr a, SymExpr c) const {
  const SymExpr rest = split(a, c).rest;
  if (rest.is(0) || within(rest, c)) return rest;
  if (const auto g = common_factor(rest, c)) {
    const Split s = split(rest, *g);
    return *g * mod(s.whole, *exact_quotient(c, *g)) + s.rest;
  }
  if (rest.kind() == SymKind::Mod && exact_quotient(rest.args()[1], c)) return mod(rest.args()[0], c);
  return sym_mod(rest, c);
}

/// e with one pair of digits joined, whose divisor is an expression of sizes; nullopt where there is none.
std::optional<SymExpr> IndexMath::joined(SymExpr e) const {
  const std::vector<SymExpr> terms = summands(e);
  for (SymExpr term : terms) {
    SymExpr low, coefficient = 1;
    for (SymExpr f : factors(term)) {
      if (low.is(0) && !f.is_int() && f.kind() == SymKind::Mod)
        low = f;
      else
        coefficient = coefficient * f;
    }
    if (low.is(0)) continue;
    const SymExpr x = low.args()[0], c = low.args()[1], above = floordiv(x, c);
    // Of what `above` is the digit: x itself, or x % (c * m).
    std::vector<std::pair<SymExpr, SymExpr>> wholes = {{above, x}};
    for (SymExpr other : terms)
      for (SymExpr f : factors(other))
        if (!f.is_int() && f.kind() == SymKind::Mod && f.args()[0] == above)
          wholes.emplace_back(f, mod(x, c * f.args()[1]));
    for (const auto& [high, whole] : wholes) {
      const SymExpr digits = coefficient * c * high;
      const SymExpr rest = e - term - digits;
      if (summands(rest).size() + summands(digits).size() + 1 == terms.size() ||
          (rest.is(0) && summands(digits).size() + 1 == terms.size()))
        return rest + coefficient * whole;
    }
  }
  return std::nullopt;
}

std::optional<SymExpr> IndexMath::factor(SymExpr e, SymExpr variable) const {
  SymExpr factor = 0;
  const auto add = [&](SymExpr term) {
    if (term == variable) {
      factor = factor + 1;
      return true;
    }
    if (!contains(term, variable)) return true;
    if (term.kind() != SymKind::Mul || std::ranges::find(term.args(), variable) == term.args().end()) return false;
    SymExpr others = 1;
    for (SymExpr f : term.args())
      if (f != variable) others = others * f;
    factor = factor + others;
    return !contains(others, variable);
  };
  const bool sum = !e.is_int() && e.kind() == SymKind::Add;
  for (SymExpr term : sum ? e.args() : std::span<const SymExpr>(&e, 1))
    if (!add(term)) return std::nullopt;
  return factor;
}

}  // namespace partita::loops
