#include "core/ops/python_ops.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/ir/place.h"
#include "core/ops/call.h"
#include "core/ops/resolve.h"
#include "core/sym/integer.h"

namespace partita {
namespace {

using SymFunction = SymExpr (*)(std::span<const SymExpr>);
using RealFunction = double (*)(std::span<const double>);
using IntFunction = std::int64_t (*)(std::span<const std::int64_t>);

enum class Kind : unsigned char { SameAsArguments, AlwaysFloat, AlwaysBool, AlwaysInt };

struct Row {
  std::string_view name;
  Kind kind;
  SymFunction sym;
  RealFunction real;
  IntFunction whole;      ///< null: computed in double
  std::string_view aten;  ///< the ATen operator for tensors; empty: none
};

/// Whole numbers are computed as symbols are, which hear of an overflow.
std::int64_t whole(SymExpr e) {
  if (!e.is_int()) throw Raise{input_error("ops.arguments", e.str() + " is no whole number")};
  return e.as_int();
}

#define BINARY(sym_expression, real_expression, int_expression) \
  [](std::span<const SymExpr> x) -> SymExpr {                   \
    SymExpr a = x[0], b = x[1];                                 \
    return sym_expression;                                      \
  },                                                            \
      [](std::span<const double> x) -> double {                 \
        double a = x[0], b = x[1];                              \
        return real_expression;                                 \
      },                                                        \
      [](std::span<const std::int64_t> x) -> std::int64_t {     \
        std::int64_t a = x[0], b = x[1];                        \
        return int_expression;                                  \
      }
#define UNARY(sym_expression, real_expression)  \
  [](std::span<const SymExpr> x) -> SymExpr {   \
    SymExpr a = x[0];                           \
    return sym_expression;                      \
  },                                            \
      [](std::span<const double> x) -> double { \
        double a = x[0];                        \
        return real_expression;                 \
      },                                        \
      nullptr

const Row rows[] = {
    {"_operator.add", Kind::SameAsArguments, BINARY(a + b, a + b, whole(SymExpr(a) + b)), "aten.add"},
    {"_operator.sub", Kind::SameAsArguments, BINARY(a - b, a - b, whole(SymExpr(a) - b)), "aten.sub"},
    {"_operator.mul", Kind::SameAsArguments, BINARY(a* b, a* b, whole(SymExpr(a) * b)), "aten.mul"},
    {"_operator.floordiv", Kind::SameAsArguments,
     BINARY(sym_floordiv(a, b), std::floor(a / b), whole(sym_floordiv(a, b))), "aten.floor_divide"},
    {"_operator.mod", Kind::SameAsArguments, BINARY(sym_mod(a, b), a - std::floor(a / b) * b, whole(sym_mod(a, b))),
     "aten.remainder"},
    {"_operator.truediv", Kind::AlwaysFloat, BINARY(sym_truediv(a, b), a / b, 0 * a * b), "aten.div"},
    {"_operator.pow", Kind::SameAsArguments, BINARY(sym_pow(a, b), std::pow(a, b), whole(sym_pow(a, b))), "aten.pow"},
    {"_operator.eq", Kind::AlwaysBool, BINARY(sym_eq(a, b), a == b, a == b), "aten.eq"},
    {"_operator.ne", Kind::AlwaysBool, BINARY(sym_ne(a, b), a != b, a != b), "aten.ne"},
    {"_operator.lt", Kind::AlwaysBool, BINARY(sym_lt(a, b), a < b, a < b), "aten.lt"},
    {"_operator.le", Kind::AlwaysBool, BINARY(sym_le(a, b), a <= b, a <= b), "aten.le"},
    {"_operator.gt", Kind::AlwaysBool, BINARY(sym_lt(b, a), a > b, a > b), "aten.gt"},
    {"_operator.ge", Kind::AlwaysBool, BINARY(sym_le(b, a), a >= b, a >= b), "aten.ge"},
    {"_operator.and_", Kind::SameAsArguments, BINARY(sym_and(a, b), a != 0 && b != 0, a& b), "aten.bitwise_and"},
    {"_operator.or_", Kind::SameAsArguments, BINARY(sym_or(a, b), a != 0 || b != 0, a | b), "aten.bitwise_or"},
    {"_operator.neg", Kind::SameAsArguments, UNARY(-a, -a), "aten.neg"},
    {"_operator.not_", Kind::AlwaysBool, UNARY(sym_not(a), a == 0), ""},
    {"torch.sym_max", Kind::SameAsArguments, BINARY(sym_max(a, b), std::max(a, b), std::max(a, b)), ""},
    {"torch.sym_min", Kind::SameAsArguments, BINARY(sym_min(a, b), std::min(a, b), std::min(a, b)), ""},
    {"torch.sym_float", Kind::AlwaysFloat, UNARY(sym_call("ToFloat", {a}), a), ""},
    {"torch.sym_int", Kind::AlwaysInt, UNARY(sym_call("TruncToInt", {a}), std::trunc(a)), ""},
    {"torch.sym_not", Kind::AlwaysBool, UNARY(sym_not(a), a == 0), ""},
    {"torch._sym_sqrt", Kind::AlwaysFloat, UNARY(sym_call("OpaqueUnaryFn_sqrt", {a}), std::sqrt(a)), ""},
    {"math.ceil", Kind::AlwaysInt, UNARY(sym_call("CeilToInt", {a}), std::ceil(a)), ""},
    {"math.floor", Kind::AlwaysInt, UNARY(sym_call("FloorToInt", {a}), std::floor(a)), ""},
    {"math.trunc", Kind::AlwaysInt, UNARY(sym_call("TruncToInt", {a}), std::trunc(a)), ""},
};

/// Text graphs contain math.trunc as math_trunc, the global name that FX gives it.
const Row* find_row(const Op* op) {
  constexpr std::string_view module = "math.", global = "math_";
  std::string_view name = op->name;
  for (const Row& row : rows) {
    if (row.name == name) return &row;
    std::string_view own = row.name;
    if (own.starts_with(module) && name.starts_with(global) && own.substr(module.size()) == name.substr(global.size()))
      return &row;
  }
  return nullptr;
}

bool divides_by_zero(std::string_view name, bool zero) {
  return zero && (name == "_operator.floordiv" || name == "_operator.mod" || name == "_operator.truediv");
}

Diagnostic unknown(const Op* op, const Node* node) {
  return unsupported("ops.unknown", fmt::format("{} is not known; `partita ops` lists the known operators", op->name),
                     place_of(node));
}

std::optional<SymExpr> as_sym(const Arg& a) {
  if (auto* i = a.get<std::int64_t>()) return SymExpr(*i);
  if (auto* b = a.get<bool>()) return SymExpr(std::int64_t{*b});
  if (auto* d = a.get<double>()) return SymExpr::real(*d);
  if (Node* n = a.node())
    if (const SymExpr* e = n->meta.sym()) return *e;
  return std::nullopt;
}

/// torch.sym_sum([...]) takes its terms as one list.
bool is_sum(const Op* op) {
  return op->name == "torch.sym_sum";
}

/// The position that `index`, which may count from the end, means among n results.
Result<std::size_t> position(std::int64_t index, std::size_t n) {
  const auto count = static_cast<std::int64_t>(n);
  if (index < -count || index >= count)
    return input_error("ops.arguments", fmt::format("index {} of a list of {} results", index, n));
  return static_cast<std::size_t>(index < 0 ? index + count : index);
}

}  // namespace

Result<std::size_t> getitem_position(const Arg& index, std::size_t n) {
  const auto e = as_sym(index);
  if (!e || !e->is_int())
    return unsupported("ops.unsupported",
                       "not supported: an index of a list of results that is known only at run time");
  return position(e->as_int(), n);
}

bool is_python_arithmetic(std::string_view name) {
  for (std::string_view module : {"_operator.", "math.", "math_", "torch.sym_", "torch._sym_"})
    if (name.starts_with(module)) return true;
  return false;
}

Result<Meta> infer_python(const Op* op, const Args& args, const Kwargs& kwargs, ShapeEnv& shapes, const Node* node) {
  if (op == Op::getitem() && args.size() == 2 && args[0].node()) {
    const Node* source = args[0].node();
    if (auto* tuple = source->meta.tuple()) {
      TRY(const std::size_t i, getitem_position(args[1], tuple->items.size()));
      return tuple->items[i];
    }
  }
  SymList syms;
  const Args* list = &args;
  if (is_sum(op) && args.size() == 1 && args[0].get<ArgList>()) list = &args[0].get<ArgList>()->items;
  bool all = true;
  for (const Arg& a : *list) {
    auto e = as_sym(a);
    all &= e.has_value();
    if (e) syms.push_back(*e);
  }
  if (is_sum(op) && all) {
    SymExpr total = 0;
    for (SymExpr e : syms) total = total + e;
    return Meta(total);
  }
  const Row* row = find_row(op);
  if (!row) return unknown(op, node);
  if (all) {
    if (syms.size() == 2 && divides_by_zero(row->name, syms[1].is(0)))
      return input_error("ops.arguments", fmt::format("{}: division by zero", op->name));
    return Meta(row->sym(syms));
  }
  if (row->aten.empty()) return unknown(op, node);
  TRY(ResolvedCall call, resolve_overload(row->aten, args, kwargs));
  return infer(call.op, call.args, call.kwargs, shapes, node);
}

Result<Value> evaluate_python(const Op* op, std::vector<Value> args, std::vector<std::pair<std::string, Value>> kwargs,
                              const Node* node) {
  if (op == Op::getitem() && args.size() == 2) {
    auto* list = args[0].get<ValueList>();
    auto* index = args[1].get<std::int64_t>();
    if (list && index) {
      TRY(const std::size_t i, position(*index, list->size()));
      return (*list)[i];
    }
  }
  const std::vector<Value>* list = &args;
  if (is_sum(op) && args.size() == 1 && args[0].get<ValueList>()) list = args[0].get<ValueList>();
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  for (const Value& v : *list) {
    if (auto* b = v.get<bool>())
      integers.push_back(*b), reals.push_back(*b);
    else if (auto* i = v.get<std::int64_t>())
      integers.push_back(*i), reals.push_back(static_cast<double>(*i));
    else if (auto* d = v.get<double>())
      reals.push_back(*d);
  }
  bool numbers = reals.size() == list->size(), all_whole = integers.size() == list->size();
  if (is_sum(op) && all_whole) {
    SymExpr total = 0;
    for (std::int64_t i : integers) total = total + i;
    return Value(whole(total));
  }
  const Row* row = find_row(op);
  if (!row) return unknown(op, node);
  if (numbers) {
    if (reals.size() == 2 && divides_by_zero(row->name, reals[1] == 0))
      return input_error("ops.arguments", fmt::format("{}: division by zero", op->name));
    if (all_whole && row->whole && row->kind == Kind::SameAsArguments) return Value(row->whole(integers));
    double v = row->real(reals);
    if (row->kind == Kind::AlwaysBool) return Value(v != 0);
    if (row->kind == Kind::AlwaysInt || (row->kind == Kind::SameAsArguments && all_whole)) {
      const std::optional<std::int64_t> n = as_integer(v);
      if (!n) return input_error("ops.arguments", fmt::format("{}: {} is beyond 64 bits", op->name, v));
      return Value(*n);
    }
    return Value(v);
  }
  if (row->aten.empty()) return unknown(op, node);
  TRY(const Op* aten, resolve_values(row->aten, args));
  return evaluate(aten, std::move(args), std::move(kwargs), {}, node);
}

}  // namespace partita
