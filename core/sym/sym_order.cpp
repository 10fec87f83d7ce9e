// The order in which sympy prints the terms of sums and the factors of products.
#include <algorithm>
#include <unordered_map>

#include "core/sym/sym_node.h"

namespace partita {
namespace {

/// sympy's Basic.class_key orders numbers first, then symbols, arithmetic, functions, and everything else.
int class_of(SymKind kind) {
  switch (kind) {
    case SymKind::Int:
    case SymKind::Float:
      return 1;
    case SymKind::Symbol:
    case SymKind::Computed:
      return 2;
    case SymKind::Add:
    case SymKind::Mul:
    case SymKind::Pow:
      return 3;
    case SymKind::FloorDiv:
    case SymKind::Mod:
    case SymKind::TrueDiv:
    case SymKind::Call:
      return 4;
    default:
      return 5;
  }
}

std::string_view name_of(SymExpr e) {
  switch (e.kind()) {
    case SymKind::FloorDiv:
      return "FloorDiv";
    case SymKind::Mod:
      return "Mod";
    case SymKind::TrueDiv:
      return "IntTrueDiv";
    case SymKind::Symbol:
    case SymKind::Call:
      return e.name();
    default:
      return {};
  }
}

struct Power {
  SymExpr base;
  std::int64_t exponent;
};
Power power_of(SymExpr e) {
  if (e.kind() == SymKind::Pow && e.args()[1].is_int()) return {e.args()[0], e.args()[1].as_int()};
  return {e, 1};
}

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

/// sympy's Expr.sort_key compares class and name, then arguments, exponent and coefficient.
int compare(SymExpr a, SymExpr b) {
  if (a == b) return 0;
  if (a.kind() == SymKind::Symbol && b.kind() == SymKind::Symbol) return three_way(a.name(), b.name());
  const auto [ca, xa] = split_coefficient(a);
  const auto [cb, xb] = split_coefficient(b);
  const Power pa = power_of(xa), pb = power_of(xb);
  const SymExpr x = pa.base, y = pb.base;
  if (int c = three_way(class_of(x.kind()), class_of(y.kind()))) return c;
  if (class_of(x.kind()) == 3)
    if (int c = three_way(x.kind() == SymKind::Add, y.kind() == SymKind::Add)) return c;
  if (x.kind() == SymKind::Float && y.kind() == SymKind::Float) return three_way(x.as_float(), y.as_float());
  if (int c = three_way(name_of(x), name_of(y))) return c;
  if (int c = three_way(x.args().size(), y.args().size())) return c;
  const std::vector<SymExpr> l = sym_print_order(x), r = sym_print_order(y);
  for (std::size_t i = 0; i < l.size(); ++i)
    if (int c = compare(l[i], r[i])) return c;
  if (int c = three_way(pa.exponent, pb.exponent)) return c;
  return three_way(ca, cb);
}

bool precedes(SymExpr a, SymExpr b) {
  return compare(a, b) < 0;
}

/// A factor of a term: the place of its base among the generators, and its exponent.
using Factor = std::pair<std::size_t, std::int64_t>;

/// Is the highest power of the first generator greater in a? Sorted factors; a generator that is absent has exponent 0.
bool greater(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (j == b.size() || (i < a.size() && a[i].first < b[j].first)) {
      if (a[i++].second != 0) return a[i - 1].second > 0;
    } else if (i == a.size() || b[j].first < a[i].first) {
      if (b[j++].second != 0) return b[j - 1].second < 0;
    } else if (a[i].second != b[j].second) {
      return a[i].second > b[j].second;
    } else {
      ++i, ++j;
    }
  }
  return false;
}

/// Sorts terms lexicographically by monomial: the highest power of the first generator comes first, the constant last.
std::vector<SymExpr> ordered_terms(std::span<const SymExpr> terms) {
  std::vector<SymExpr> generators;
  std::unordered_map<SymExpr, std::size_t> place;  ///< in generators
  std::vector<std::pair<std::vector<Factor>, SymExpr>> monomials;
  for (SymExpr term : terms) {
    std::vector<Factor> factors;
    const SymExpr rest = split_coefficient(term).second;
    auto take = [&](SymExpr f) {
      if (f.is_int() || f.kind() == SymKind::Float) return;
      const Power power = power_of(f);
      const auto [found, is_new] = place.emplace(power.base, generators.size());
      if (is_new) generators.push_back(power.base);
      factors.emplace_back(found->second, power.exponent);
    };
    if (rest.kind() == SymKind::Mul)
      std::ranges::for_each(rest.args(), take);
    else
      take(rest);
    monomials.emplace_back(std::move(factors), term);
  }
  std::ranges::sort(generators, precedes);
  std::vector<std::size_t> rank(generators.size());
  for (std::size_t i = 0; i < generators.size(); ++i) rank[place.at(generators[i])] = i;
  for (auto& [factors, term] : monomials) {
    for (Factor& f : factors) f.first = rank[f.first];
    std::ranges::sort(factors);
  }
  std::ranges::stable_sort(monomials, [](const auto& a, const auto& b) { return greater(a.first, b.first); });
  std::vector<SymExpr> out;
  for (const auto& [factors, term] : monomials) out.push_back(term);
  return out;
}

}  // namespace

std::vector<SymExpr> sym_print_order(SymExpr e) {
  if (e.kind() == SymKind::Add) return ordered_terms(e.args());
  std::vector<SymExpr> out(e.args().begin(), e.args().end());
  if (e.kind() == SymKind::Mul || e.kind() == SymKind::Min || e.kind() == SymKind::Max)
    std::ranges::stable_sort(out, precedes);
  return out;
}

}  // namespace partita
