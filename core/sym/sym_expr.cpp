// Makes hash-consed nodes, in one table for all threads, and evaluates expressions in double or exactly. Substitution
// rebuilds them by the operators of sym_arith.cpp.
#include "core/sym/sym_expr.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/base/raise.h"
#include "core/sym/float_symbol.h"
#include "core/sym/integer.h"
#include "core/sym/sym_functions.h"
#include "core/sym/sym_node.h"
#include "core/sym/term_budget.h"

namespace partita {

namespace {
constexpr int max_depth = 250;
}

SymExpr SymBuilder::make(SymKind kind, std::vector<SymExpr> args, std::string name, double real, int id) {
  SymNode node{kind, real, std::move(name), std::move(args), id};
  std::size_t h = hash64(node.name, static_cast<std::uint64_t>(kind));
  h = hash_combine(h, std::bit_cast<std::uint64_t>(real));
  h = hash_combine(h, static_cast<std::uint64_t>(id));
  if (!node.args.empty()) node.terms = 0;
  for (const SymExpr& a : node.args) {
    h = hash_combine(h, a.hash());
    node.is_float |= a.is_float();
    if (__builtin_add_overflow(node.terms, a.node_ ? a.node_->terms : 1, &node.terms)) node.terms = SIZE_MAX;
    if (a.node_) node.depth = std::max(node.depth, a.node_->depth + 1);
  }
  if (node.depth > max_depth)
    throw Raise{input_error("sym.too_deep", fmt::format("symbolic sizes nested more than {} deep", max_depth))};
  TermBudget::spend(node.terms);
  node.hash = h;
  if (kind == SymKind::Float || kind == SymKind::TrueDiv) node.is_float = true;
  if (kind == SymKind::Pow && node.args[1].is_int() && node.args[1].as_int() < 0) node.is_float = true;
  if (kind == SymKind::Symbol) node.is_float = is_float_symbol(node.name);
  if (kind == SymKind::Call) {
    const SymFunction* function = find_sym_function(node.name);
    const bool as_arguments = function && function->result == SymFunction::Result::AsArguments;
    if (!as_arguments)
      node.is_float =
          function ? function->result == SymFunction::Result::Float : node.name.starts_with("OpaqueUnaryFn");
  }
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

SymExpr SymBuilder::wrap(const SymNode* node) {
  SymExpr e;
  e.node_ = node;
  return e;
}

SymExpr SymExpr::symbol(std::string_view name) {
  return SymBuilder::make(SymKind::Symbol, {}, std::string(name));
}

SymExpr SymExpr::real(double value) {
  return SymBuilder::make(SymKind::Float, {}, {}, value);
}

SymExpr SymExpr::computed(int id) {
  return SymBuilder::make(SymKind::Computed, {}, {}, 0, id);
}

SymKind SymExpr::kind() const {
  return node_ ? node_->kind : SymKind::Int;
}

std::int64_t SymExpr::as_int() const {
  CHECK(is_int(), str());
  return value_;
}

double SymExpr::as_float() const {
  CHECK(kind() == SymKind::Float);
  return node_->real;
}

int SymExpr::computed_id() const {
  CHECK(kind() == SymKind::Computed);
  return node_->id;
}

std::span<const SymExpr> SymExpr::args() const {
  if (!node_) return {};
  return node_->args;
}

const std::string& SymExpr::name() const {
  CHECK(node_);
  return node_->name;
}

bool SymExpr::is_float() const {
  return node_ && node_->is_float;
}

bool SymExpr::is_boolean() const {
  return node_ && node_->kind >= SymKind::Eq && node_->kind <= SymKind::Not;
}

std::size_t SymExpr::hash() const {
  return node_ ? node_->hash : hash_combine(static_cast<std::uint64_t>(value_), 0);
}

std::optional<double> SymExpr::evaluate(
    const std::function<std::optional<std::int64_t>(const std::string&)>& symbol) const {
  if (is_int()) return static_cast<double>(value_);
  if (kind() == SymKind::Float) return node_->real;
  if (kind() == SymKind::Symbol) {
    auto v = symbol(node_->name);
    if (!v) return std::nullopt;
    return is_float() ? float_of_bits(*v) : static_cast<double>(*v);
  }
  if (kind() == SymKind::Computed) return std::nullopt;
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
    case SymKind::Add:
      return fold(std::plus<>());
    case SymKind::Mul:
      return fold(std::multiplies<>());
    case SymKind::Pow:
      return std::pow(v[0], v[1]);
    case SymKind::FloorDiv:
      return v[1] == 0 ? std::nullopt : std::optional(python_floor_divide(v[0], v[1]));
    case SymKind::Mod:
      return v[1] == 0 ? std::nullopt : std::optional(python_remainder(v[0], v[1]));
    case SymKind::TrueDiv:
      return v[1] == 0 ? std::nullopt : std::optional(v[0] / v[1]);
    case SymKind::Min:
      return fold([](double a, double b) { return std::min(a, b); });
    case SymKind::Max:
      return fold([](double a, double b) { return std::max(a, b); });
    case SymKind::Eq:
      return v[0] == v[1];
    case SymKind::Ne:
      return v[0] != v[1];
    case SymKind::Lt:
      return v[0] < v[1];
    case SymKind::Le:
      return v[0] <= v[1];
    case SymKind::And:
      return v[0] != 0 && v[1] != 0;
    case SymKind::Or:
      return v[0] != 0 || v[1] != 0;
    case SymKind::Not:
      return v[0] == 0;
    case SymKind::Call:
      if (const SymFunction* function = find_sym_function(name()); function && function->arguments == v.size())
        return function->value(v);
      return std::nullopt;
    case SymKind::Int:
    case SymKind::Float:
    case SymKind::Symbol:
    case SymKind::Computed:
      break;
  }
  CHECK(false, "kind handled above");
}

namespace {

SymExpr rebuild(SymKind kind, const std::string& name, std::vector<SymExpr> a) {
  switch (kind) {
    case SymKind::Add:
      return sym_sum(a);
    case SymKind::Mul:
      return product(a);
    case SymKind::Pow:
      return sym_pow(a[0], a[1]);
    case SymKind::FloorDiv:
      return a[1].is(0) ? SymBuilder::make(kind, a) : sym_floordiv(a[0], a[1]);
    case SymKind::Mod:
      return a[1].is(0) ? SymBuilder::make(kind, a) : sym_mod(a[0], a[1]);
    case SymKind::TrueDiv:
      return sym_truediv(a[0], a[1]);
    case SymKind::Min:
    case SymKind::Max: {
      SymExpr out = a[0];
      for (std::size_t i = 1; i < a.size(); ++i) out = kind == SymKind::Min ? sym_min(out, a[i]) : sym_max(out, a[i]);
      return out;
    }
    case SymKind::Eq:
      return sym_eq(a[0], a[1]);
    case SymKind::Ne:
      return sym_ne(a[0], a[1]);
    case SymKind::Lt:
      return sym_lt(a[0], a[1]);
    case SymKind::Le:
      return sym_le(a[0], a[1]);
    case SymKind::And:
      return sym_and(a[0], a[1]);
    case SymKind::Or:
      return sym_or(a[0], a[1]);
    case SymKind::Not:
      return sym_not(a[0]);
    case SymKind::Call:
      return sym_call(name, std::move(a));
    case SymKind::Int:
    case SymKind::Float:
    case SymKind::Symbol:
    case SymKind::Computed:
      break;
  }
  CHECK(false, "a leaf has no arguments");
}

}  // namespace

std::optional<std::int64_t> SymExpr::evaluate_integer(
    const std::function<std::optional<std::int64_t>(const std::string&)>& symbol) const {
  if (is_int()) return value_;
  if (kind() == SymKind::Symbol && !is_float()) return symbol(node_->name);
  const auto in_double = [&] {
    const auto v = evaluate(symbol);
    return v ? as_integer(*v) : std::nullopt;
  };
  if (is_float() || std::ranges::any_of(args(), &SymExpr::is_float)) return in_double();
  const auto of = [&](SymExpr e) { return e.evaluate_integer(symbol); };
  switch (kind()) {
    case SymKind::Add:
    case SymKind::Mul: {
      std::int64_t out = kind() == SymKind::Add ? 0 : 1;
      for (SymExpr a : args()) {
        const auto v = of(a);
        if (!v ||
            (kind() == SymKind::Add ? __builtin_add_overflow(out, *v, &out) : __builtin_mul_overflow(out, *v, &out)))
          return std::nullopt;
      }
      return out;
    }
    case SymKind::Pow:
    case SymKind::FloorDiv:
    case SymKind::Mod:
    case SymKind::Eq:
    case SymKind::Ne:
    case SymKind::Lt:
    case SymKind::Le:
    case SymKind::Min:
    case SymKind::Max: {
      std::vector<SymExpr> known;
      for (SymExpr a : args()) {
        const auto v = of(a);
        if (!v) return std::nullopt;
        known.emplace_back(*v);
      }
      if ((kind() == SymKind::FloorDiv || kind() == SymKind::Mod) && known[1].is(0)) return std::nullopt;
      const auto out = catch_raised<SymExpr>([&] { return rebuild(kind(), {}, std::move(known)); });
      return out && out->is_int() ? std::optional(out->as_int()) : std::nullopt;
    }
    default:
      return in_double();
  }
}

SymExpr SymExpr::substitute(const std::function<std::optional<SymExpr>(const std::string&)>& symbol) const {
  return rebuilt([&](SymExpr e) { return e.kind() == SymKind::Symbol ? symbol(e.name()).value_or(e) : e; });
}

SymExpr SymExpr::rebuilt(const std::function<SymExpr(SymExpr)>& change) const {
  if (args().empty()) return change(*this);
  std::vector<SymExpr> replaced;
  for (SymExpr a : args()) replaced.push_back(a.rebuilt(change));
  return change(rebuild(kind(), node_->name, std::move(replaced)));
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

}  // namespace partita
