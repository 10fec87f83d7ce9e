#include "core/sym/sym_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "core/base/check.h"
#include "core/base/hash.h"

namespace partita {

struct SymNode {
  SymKind kind;
  double real = 0;
  std::string name;
  std::vector<SymExpr> args;
  std::size_t hash = 0;
  bool is_float = false;

  bool same(const SymNode& o) const {
    return kind == o.kind && std::bit_cast<std::uint64_t>(real) == std::bit_cast<std::uint64_t>(o.real) &&
           name == o.name && args == o.args;
  }
};

/// The only maker of SymNodes: interns them for the life of the process.
struct SymBuilder {
  static SymExpr make(SymKind kind, std::vector<SymExpr> args, std::string name = {}, double real = 0) {
    SymNode node{kind, real, std::move(name), std::move(args)};
    std::size_t h = hash64(node.name, static_cast<std::uint64_t>(kind));
    h = hash_combine(h, std::bit_cast<std::uint64_t>(real));
    for (const SymExpr& a : node.args) {
      h = hash_combine(h, a.hash());
      node.is_float |= a.is_float();
    }
    node.hash = h;
    if (kind == SymKind::Float || kind == SymKind::TrueDiv) node.is_float = true;
    if (kind == SymKind::Symbol) node.is_float = node.name.starts_with("zf");
    if (kind == SymKind::Call) node.is_float = node.name == "ToFloat" || node.name.starts_with("OpaqueUnaryFn");
    if (kind >= SymKind::Eq && kind <= SymKind::Not) node.is_float = false;

    static std::mutex mutex;
    static std::deque<SymNode> nodes;
    static std::unordered_multimap<std::size_t, const SymNode*> table;
    std::lock_guard lock(mutex);
    auto [first, last] = table.equal_range(h);
    for (auto it = first; it != last; ++it)
      if (it->second->same(node)) return wrap(it->second);
    nodes.push_back(std::move(node));
    table.emplace(h, &nodes.back());
    return wrap(&nodes.back());
  }

  static SymExpr wrap(const SymNode* node) {
    SymExpr e;
    e.node_ = node;
    return e;
  }
};

namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

/// Total order that does not depend on addresses, so that printing is the same in every run.
bool before(const SymExpr& a, const SymExpr& b) {
  if (a == b) return false;
  if (a.kind() != b.kind()) return a.kind() < b.kind();
  switch (a.kind()) {
    case SymKind::Int: return a.as_int() < b.as_int();
    case SymKind::Float: return a.as_float() < b.as_float();
    case SymKind::Symbol:
      if (a.name().size() != b.name().size()) return a.name().size() < b.name().size();
      return a.name() < b.name();
    default: break;
  }
  if (a.kind() == SymKind::Call && a.name() != b.name()) return a.name() < b.name();
  return std::lexicographical_compare(a.args().begin(), a.args().end(), b.args().begin(), b.args().end(), before);
}

struct Before {
  bool operator()(const SymExpr& a, const SymExpr& b) const { return before(a, b); }
};

/// A term of a sum: coefficient times rest, where rest carries no integer factor.
std::pair<std::int64_t, SymExpr> split_coefficient(SymExpr e) {
  if (e.is_int()) return {e.as_int(), SymExpr(1)};
  if (e.kind() == SymKind::Mul && e.args()[0].is_int()) {
    auto rest = e.args().subspan(1);
    if (rest.size() == 1) return {e.args()[0].as_int(), rest[0]};
    return {e.args()[0].as_int(), SymBuilder::make(SymKind::Mul, {rest.begin(), rest.end()})};
  }
  return {1, e};
}

SymExpr scaled(std::int64_t c, SymExpr rest) {
  if (c == 0) return 0;
  if (rest.is_int()) return c * rest.as_int();
  if (c == 1) return rest;
  std::vector<SymExpr> factors{SymExpr(c)};
  if (rest.kind() == SymKind::Mul)
    factors.insert(factors.end(), rest.args().begin(), rest.args().end());
  else
    factors.push_back(rest);
  return SymBuilder::make(SymKind::Mul, std::move(factors));
}

SymExpr sum(std::span<const SymExpr> terms) {
  std::map<SymExpr, std::int64_t, Before> coefficients;
  std::int64_t constant = 0;
  std::optional<double> real;
  auto add = [&](auto&& self, SymExpr e) -> void {
    if (e.is_int()) {
      constant += e.as_int();
    } else if (e.kind() == SymKind::Float) {
      real = real.value_or(0) + e.as_float();
    } else if (e.kind() == SymKind::Add) {
      for (SymExpr a : e.args()) self(self, a);
    } else {
      auto [c, rest] = split_coefficient(e);
      coefficients[rest] += c;
    }
  };
  for (SymExpr e : terms) add(add, e);
  std::vector<SymExpr> out;
  for (auto& [rest, c] : coefficients)
    if (c != 0) out.push_back(scaled(c, rest));
  if (real) out.push_back(SymExpr::real(*real + static_cast<double>(constant)));
  else if (constant != 0) out.push_back(constant);
  if (out.empty()) return 0;
  return out.size() == 1 ? out[0] : SymBuilder::make(SymKind::Add, std::move(out));
}

void collect_factors(SymExpr e, std::int64_t& coefficient, std::map<SymExpr, std::int64_t, Before>& powers) {
  if (e.is_int()) {
    coefficient *= e.as_int();
  } else if (e.kind() == SymKind::Mul) {
    for (SymExpr a : e.args()) collect_factors(a, coefficient, powers);
  } else if (e.kind() == SymKind::Pow && e.args()[1].is_int()) {
    powers[e.args()[0]] += e.args()[1].as_int();
  } else {
    powers[e] += 1;
  }
}

SymExpr multiply(SymExpr a, SymExpr b) {
  if (a.is_int() && b.is_int()) return a.as_int() * b.as_int();
  if (a.is(0) || b.is(0)) return 0;
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  if (a.kind() != SymKind::Add) std::swap(a, b);
  if (a.kind() == SymKind::Add) {
    std::vector<SymExpr> terms;
    for (SymExpr t : a.args()) terms.push_back(multiply(t, b));
    return sum(terms);
  }
  std::int64_t coefficient = 1;
  std::map<SymExpr, std::int64_t, Before> powers;
  collect_factors(a, coefficient, powers);
  collect_factors(b, coefficient, powers);
  std::vector<SymExpr> factors;
  for (auto& [base, n] : powers) {
    if (n == 1) factors.push_back(base);
    else if (n != 0) factors.push_back(SymBuilder::make(SymKind::Pow, {base, SymExpr(n)}));
  }
  if (factors.empty()) return coefficient;
  SymExpr rest = factors.size() == 1 ? factors[0] : SymBuilder::make(SymKind::Mul, std::move(factors));
  return scaled(coefficient, rest);
}

/// e / d when every term of e has an integer coefficient divisible by d, or d is one of its factors.
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
    return sum(terms);
  }
  std::int64_t c = 1, k = 1;
  std::map<SymExpr, std::int64_t, Before> have, want;
  collect_factors(e, c, have);
  collect_factors(d, k, want);
  if (k == 0 || c % k != 0) return std::nullopt;
  for (auto& [base, n] : want) {
    auto it = have.find(base);
    if (it == have.end() || it->second < n) return std::nullopt;
    it->second -= n;
  }
  SymExpr q = c / k;
  for (auto& [base, n] : have) q = multiply(q, sym_pow(base, n));
  return q;
}

template <class Int>
SymExpr extremum(SymKind kind, SymExpr a, SymExpr b, Int pick) {
  if (a.is_int() && b.is_int()) return pick(a.as_int(), b.as_int());
  std::set<SymExpr, Before> args;
  for (SymExpr e : {a, b}) {
    if (e.kind() == kind) args.insert(e.args().begin(), e.args().end());
    else args.insert(e);
  }
  std::optional<std::int64_t> constant;
  std::vector<SymExpr> out;
  for (SymExpr e : args) {
    if (e.is_int()) constant = constant ? pick(*constant, e.as_int()) : e.as_int();
    else out.push_back(e);
  }
  if (constant) out.insert(out.begin(), SymExpr(*constant));
  return out.size() == 1 ? out[0] : SymBuilder::make(kind, std::move(out));
}

/// Compares by the difference, so that s0 + 1 == s0 + 1 and s0 < s0 + 2 fold.
SymExpr compare(SymKind kind, SymExpr a, SymExpr b) {
  SymExpr difference = a - b;
  if (difference.is_int()) {
    std::int64_t d = difference.as_int();
    switch (kind) {
      case SymKind::Eq: return d == 0;
      case SymKind::Ne: return d != 0;
      case SymKind::Lt: return d < 0;
      default: return d <= 0;
    }
  }
  if ((kind == SymKind::Eq || kind == SymKind::Ne) && before(b, a)) std::swap(a, b);
  return SymBuilder::make(kind, {a, b});
}

}  // namespace

SymExpr SymExpr::symbol(std::string_view name) {
  return SymBuilder::make(SymKind::Symbol, {}, std::string(name));
}

SymExpr SymExpr::real(double value) {
  return SymBuilder::make(SymKind::Float, {}, {}, value);
}

SymKind SymExpr::kind() const { return node_ ? node_->kind : SymKind::Int; }

std::int64_t SymExpr::as_int() const {
  CHECK(is_int(), str());
  return value_;
}

double SymExpr::as_float() const {
  CHECK(kind() == SymKind::Float);
  return node_->real;
}

std::span<const SymExpr> SymExpr::args() const {
  if (!node_) return {};
  return node_->args;
}

const std::string& SymExpr::name() const {
  CHECK(node_);
  return node_->name;
}

bool SymExpr::is_float() const { return node_ && node_->is_float; }

bool SymExpr::is_boolean() const { return node_ && node_->kind >= SymKind::Eq && node_->kind <= SymKind::Not; }

std::size_t SymExpr::hash() const {
  return node_ ? node_->hash : std::hash<std::int64_t>()(value_) * 0x9e3779b97f4a7c15ULL;
}

SymExpr operator+(SymExpr a, SymExpr b) {
  if (a.is_int() && b.is_int()) return a.value_ + b.value_;
  return sum(std::array{a, b});
}

SymExpr operator-(SymExpr a) { return multiply(-1, a); }
SymExpr operator-(SymExpr a, SymExpr b) { return a + -b; }
SymExpr operator*(SymExpr a, SymExpr b) { return multiply(a, b); }

SymExpr sym_floordiv(SymExpr a, SymExpr b) {
  CHECK(!b.is(0), "floor division by zero");
  if (a.is_int() && b.is_int()) return floor_div(a.as_int(), b.as_int());
  if (b.is(1)) return a;
  if (auto q = exact_quotient(a, b)) return *q;
  if (a.kind() == SymKind::Add) {
    std::vector<SymExpr> whole, rest;
    for (SymExpr t : a.args()) {
      if (auto q = exact_quotient(t, b)) whole.push_back(*q);
      else rest.push_back(t);
    }
    if (!whole.empty()) return sum(whole) + sym_floordiv(sum(rest), b);
  }
  if (a.kind() == SymKind::FloorDiv && a.args()[1].is_int() && b.is_int() && b.as_int() > 0 && a.args()[1].as_int() > 0)
    return sym_floordiv(a.args()[0], a.args()[1] * b);
  return SymBuilder::make(SymKind::FloorDiv, {a, b});
}

SymExpr sym_mod(SymExpr a, SymExpr b) {
  CHECK(!b.is(0), "modulo by zero");
  if (a.is_int() && b.is_int()) return a.as_int() - floor_div(a.as_int(), b.as_int()) * b.as_int();
  if (b.is(1) || exact_quotient(a, b)) return 0;
  if (a.kind() == SymKind::Add) {
    std::vector<SymExpr> rest;
    for (SymExpr t : a.args())
      if (!exact_quotient(t, b)) rest.push_back(t);
    if (rest.size() < a.args().size()) return sym_mod(sum(rest), b);
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
    SymExpr out = 1;
    for (std::int64_t i = 0; i < exponent.as_int(); ++i) out = out * base;
    return out;
  }
  return SymBuilder::make(SymKind::Pow, {base, exponent});
}

SymExpr sym_min(SymExpr a, SymExpr b) {
  return extremum(SymKind::Min, a, b, [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
}

SymExpr sym_max(SymExpr a, SymExpr b) {
  return extremum(SymKind::Max, a, b, [](std::int64_t x, std::int64_t y) { return std::max(x, y); });
}

SymExpr sym_eq(SymExpr a, SymExpr b) { return compare(SymKind::Eq, a, b); }
SymExpr sym_ne(SymExpr a, SymExpr b) { return compare(SymKind::Ne, a, b); }
SymExpr sym_lt(SymExpr a, SymExpr b) { return compare(SymKind::Lt, a, b); }
SymExpr sym_le(SymExpr a, SymExpr b) { return compare(SymKind::Le, a, b); }

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
    case SymKind::Not: return a.args()[0];
    case SymKind::Eq: return sym_ne(a.args()[0], a.args()[1]);
    case SymKind::Ne: return sym_eq(a.args()[0], a.args()[1]);
    case SymKind::Lt: return sym_le(a.args()[1], a.args()[0]);
    case SymKind::Le: return sym_lt(a.args()[1], a.args()[0]);
    default: return SymBuilder::make(SymKind::Not, {a});
  }
}

SymExpr sym_call(std::string_view function, std::vector<SymExpr> args) {
  return SymBuilder::make(SymKind::Call, std::move(args), std::string(function));
}

std::optional<double> SymExpr::evaluate(
    const std::function<std::optional<std::int64_t>(const std::string&)>& symbol) const {
  if (is_int()) return static_cast<double>(value_);
  if (kind() == SymKind::Float) return node_->real;
  if (kind() == SymKind::Symbol) {
    auto v = symbol(node_->name);
    if (!v) return std::nullopt;
    return static_cast<double>(*v);
  }
  std::vector<double> v;
  for (SymExpr a : args()) {
    auto x = a.evaluate(symbol);
    if (!x) return std::nullopt;
    v.push_back(*x);
  }
  auto fold = [&](auto f) {
    double out = v[0];
    for (std::size_t i = 1; i < v.size(); ++i) out = f(out, v[i]);
    return out;
  };
  switch (kind()) {
    case SymKind::Add: return fold(std::plus<>());
    case SymKind::Mul: return fold(std::multiplies<>());
    case SymKind::Pow: return std::pow(v[0], v[1]);
    case SymKind::FloorDiv: return v[1] == 0 ? std::nullopt : std::optional(std::floor(v[0] / v[1]));
    case SymKind::Mod: return v[1] == 0 ? std::nullopt : std::optional(v[0] - std::floor(v[0] / v[1]) * v[1]);
    case SymKind::TrueDiv: return v[1] == 0 ? std::nullopt : std::optional(v[0] / v[1]);
    case SymKind::Min: return fold([](double a, double b) { return std::min(a, b); });
    case SymKind::Max: return fold([](double a, double b) { return std::max(a, b); });
    case SymKind::Eq: return v[0] == v[1];
    case SymKind::Ne: return v[0] != v[1];
    case SymKind::Lt: return v[0] < v[1];
    case SymKind::Le: return v[0] <= v[1];
    case SymKind::And: return v[0] != 0 && v[1] != 0;
    case SymKind::Or: return v[0] != 0 || v[1] != 0;
    case SymKind::Not: return v[0] == 0;
    case SymKind::Call:
      if (name() == "ToFloat") return v[0];
      if (name() == "CeilToInt") return std::ceil(v[0]);
      if (name() == "FloorToInt" || name() == "TruncToInt") return name()[0] == 'F' ? std::floor(v[0]) : std::trunc(v[0]);
      if (name() == "OpaqueUnaryFn_sqrt") return std::sqrt(v[0]);
      if (name() == "Where" && v.size() == 3) return v[0] != 0 ? v[1] : v[2];
      return std::nullopt;
    case SymKind::Int:
    case SymKind::Float:
    case SymKind::Symbol: break;
  }
  CHECK(false, "kind handled above");
}

namespace {

SymExpr rebuild(SymKind kind, const std::string& name, std::vector<SymExpr> a) {
  switch (kind) {
    case SymKind::Add: return sum(a);
    case SymKind::Mul: return product(a);
    case SymKind::Pow: return sym_pow(a[0], a[1]);
    case SymKind::FloorDiv: return a[1].is(0) ? SymBuilder::make(kind, a) : sym_floordiv(a[0], a[1]);
    case SymKind::Mod: return a[1].is(0) ? SymBuilder::make(kind, a) : sym_mod(a[0], a[1]);
    case SymKind::TrueDiv: return sym_truediv(a[0], a[1]);
    case SymKind::Min:
    case SymKind::Max: {
      SymExpr out = a[0];
      for (std::size_t i = 1; i < a.size(); ++i) out = kind == SymKind::Min ? sym_min(out, a[i]) : sym_max(out, a[i]);
      return out;
    }
    case SymKind::Eq: return sym_eq(a[0], a[1]);
    case SymKind::Ne: return sym_ne(a[0], a[1]);
    case SymKind::Lt: return sym_lt(a[0], a[1]);
    case SymKind::Le: return sym_le(a[0], a[1]);
    case SymKind::And: return sym_and(a[0], a[1]);
    case SymKind::Or: return sym_or(a[0], a[1]);
    case SymKind::Not: return sym_not(a[0]);
    case SymKind::Call: return sym_call(name, std::move(a));
    case SymKind::Int:
    case SymKind::Float:
    case SymKind::Symbol: break;
  }
  CHECK(false, "a leaf has no arguments");
}

}  // namespace

SymExpr SymExpr::substitute(const std::function<std::optional<SymExpr>(const std::string&)>& symbol) const {
  if (is_int() || kind() == SymKind::Float) return *this;
  if (kind() == SymKind::Symbol) return symbol(node_->name).value_or(*this);
  std::vector<SymExpr> replaced;
  for (SymExpr a : args()) replaced.push_back(a.substitute(symbol));
  return rebuild(kind(), node_->name, std::move(replaced));
}

std::vector<std::string> SymExpr::symbols() const {
  std::set<std::string> found;
  auto walk = [&](auto&& self, SymExpr e) -> void {
    if (e.kind() == SymKind::Symbol) found.insert(e.name());
    for (SymExpr a : e.args()) self(self, a);
  };
  walk(walk, *this);
  return {found.begin(), found.end()};
}

SymExpr product(std::span<const SymExpr> factors) {
  SymExpr out = 1;
  for (SymExpr f : factors) out = out * f;
  return out;
}

SymList contiguous_strides(std::span<const SymExpr> sizes) {
  SymList strides(sizes.size());
  SymExpr step = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    if (!sizes[i].is(0)) step = step * sizes[i];
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
