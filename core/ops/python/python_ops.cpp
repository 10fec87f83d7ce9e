// A table of Python's functions on numbers: symbolic, in double, on integers. infer_python() and evaluate_python() read
// it, do getitem, and hand calls on tensors to the row's ATen operator.
#include "core/ops/python/python_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "core/base/number_text.h"
#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/call.h"
#include "core/ops/schema/resolve.h"
#include "core/sym/integer.h"
#include "core/sym/sym_functions.h"

namespace partita {
namespace {

/// The kind of a result: a float if an argument is one, else an integer (AsArguments); a truth value if all arguments
/// are, else an integer (Bits); or always the same.
enum class ResultKind : unsigned char { AsArguments, Bits, Float, Bool, Integer };

/// A function on numbers, by the name that follows its module.
struct Row {
  std::string_view name;
  ResultKind kind;
  std::size_t arguments;
  SymExpr (*sym)(std::span<const SymExpr>);
  double (*real)(std::span<const double>);
  std::int64_t (*whole)(std::span<const std::int64_t>);  ///< null: computed in double
  std::string_view aten;                                 ///< the ATen operator for tensors; empty: none
  std::string_view function = {};                        ///< of SymFunction, which stands for `sym` and `real`
};

/// Whole numbers are computed as symbols are, which hear of an overflow.
std::int64_t whole(SymExpr e) {
  if (!e.is_int()) throw Raise{input_error("ops.arguments", e.str() + " is no whole number")};
  return e.as_int();
}

/// 2^count, which is what a shift multiplies or divides by.
SymExpr power_of_two(std::int64_t count) {
  if (count < 0) fail("negative shift count");
  return sym_pow(2, count);
}

SymExpr as_float(SymExpr e) {
  return e.is_float() ? e : sym_call("ToFloat", {e});
}

SymExpr power(SymExpr a, SymExpr b) {
  return b.is_int() && b.as_int() < 0 ? sym_pow(as_float(a), as_float(b)) : sym_pow(a, b);
}

/// bool(e)
SymExpr truth(SymExpr e) {
  return e.is_boolean() ? e : sym_ne(e, 0);
}

[[noreturn]] double no_bits(double a) {
  fail(fmt::format("unsupported operand {}: an integer is expected", a));
}

bool is_truth(SymExpr e) {
  return e.is_boolean() || e.is(0) || e.is(1);
}
/// Python's & | ^, which are logical on truth values.
bool are_truths(SymExpr a, SymExpr b) {
  return (a.is_boolean() || b.is_boolean()) && is_truth(a) && is_truth(b);
}

#define BINARY(sym_expression, real_expression, int_expression) \
  2,                                                            \
      [](std::span<const SymExpr> x) -> SymExpr {               \
        SymExpr a = x[0], b = x[1];                             \
        return sym_expression;                                  \
      },                                                        \
      [](std::span<const double> x) -> double {                 \
        double a = x[0], b = x[1];                              \
        return real_expression;                                 \
      },                                                        \
      [](std::span<const std::int64_t> x) -> std::int64_t {     \
        std::int64_t a = x[0], b = x[1];                        \
        return int_expression;                                  \
      }
#define UNARY(sym_expression, real_expression, int_expression) \
  1,                                                           \
      [](std::span<const SymExpr> x) -> SymExpr {              \
        SymExpr a = x[0];                                      \
        return sym_expression;                                 \
      },                                                       \
      [](std::span<const double> x) -> double {                \
        double a = x[0];                                       \
        return real_expression;                                \
      },                                                       \
      [](std::span<const std::int64_t> x) -> std::int64_t {    \
        std::int64_t a = x[0];                                 \
        return int_expression;                                 \
      }
#define FUNCTION(arguments, function) arguments, nullptr, nullptr, nullptr, "", function
#define ROUNDING(function) 1, nullptr, nullptr, [](std::span<const std::int64_t> x) { return x[0]; }, "", function

const Row rows[] = {
    {"add", ResultKind::AsArguments, BINARY(a + b, a + b, whole(SymExpr(a) + b)), "aten.add"},
    {"sub", ResultKind::AsArguments, BINARY(a - b, a - b, whole(SymExpr(a) - b)), "aten.sub"},
    {"mul", ResultKind::AsArguments, BINARY(a* b, a* b, whole(SymExpr(a) * b)), "aten.mul"},
    {"floordiv", ResultKind::AsArguments,
     BINARY(sym_floordiv(a, b), python_floor_divide(a, b), whole(sym_floordiv(a, b))), "aten.floor_divide"},
    {"mod", ResultKind::AsArguments, BINARY(sym_mod(a, b), python_remainder(a, b), whole(sym_mod(a, b))),
     "aten.remainder"},
    {"truediv", ResultKind::Float, BINARY(sym_truediv(a, b), a / b, 0 * a * b), "aten.div"},
    {"pow", ResultKind::AsArguments, BINARY(power(a, b), std::pow(a, b), whole(sym_pow(a, b))), "aten.pow"},
    {"math.pow", ResultKind::Float, BINARY(sym_pow(as_float(a), as_float(b)), std::pow(a, b), 0 * a * b), ""},
    {"gcd", ResultKind::Integer, BINARY(sym_call("gcd", {a, b}), 0 * a * b, whole(sym_call("gcd", {a, b}))), ""},
    {"eq", ResultKind::Bool, BINARY(sym_eq(a, b), a == b, a == b), "aten.eq"},
    {"ne", ResultKind::Bool, BINARY(sym_ne(a, b), a != b, a != b), "aten.ne"},
    {"lt", ResultKind::Bool, BINARY(sym_lt(a, b), a < b, a < b), "aten.lt"},
    {"le", ResultKind::Bool, BINARY(sym_le(a, b), a <= b, a <= b), "aten.le"},
    {"gt", ResultKind::Bool, BINARY(sym_lt(b, a), a > b, a > b), "aten.gt"},
    {"ge", ResultKind::Bool, BINARY(sym_le(b, a), a >= b, a >= b), "aten.ge"},
    {"and_", ResultKind::Bits,
     BINARY(are_truths(a, b) ? sym_and(a, b) : sym_call("BitwiseFn_bitwise_and", {a, b}), no_bits(a + b), a& b),
     "aten.bitwise_and"},
    {"or_", ResultKind::Bits,
     BINARY(are_truths(a, b) ? sym_or(a, b) : sym_call("BitwiseFn_bitwise_or", {a, b}), no_bits(a + b), a | b),
     "aten.bitwise_or"},
    {"xor", ResultKind::Bits,
     BINARY(are_truths(a, b) ? sym_or(sym_and(a, sym_not(b)), sym_and(sym_not(a), b))
                             : sym_call("BitwiseFn_bitwise_xor", {a, b}),
            no_bits(a + b), a ^ b),
     "aten.bitwise_xor"},
    {"lshift", ResultKind::Integer,
     BINARY(b.is_int() ? a* power_of_two(b.as_int()) : sym_call("LShift", {a, b}), no_bits(a + b),
            whole(a* power_of_two(b))),
     "aten.__lshift__"},
    {"rshift", ResultKind::Integer,
     BINARY(sym_call("RShift", {a, b}), no_bits(a + b),
            b > 62 ? (a < 0 ? -1 : 0) : whole(sym_floordiv(a, power_of_two(b)))),
     "aten.__rshift__"},
    {"neg", ResultKind::AsArguments, UNARY(-a, -a, whole(-SymExpr(a))), "aten.neg"},
    {"pos", ResultKind::AsArguments, UNARY(a, a, a), "aten.positive"},
    {"invert", ResultKind::Integer, UNARY(-a - 1, no_bits(a), whole(-SymExpr(a) - 1)), "aten.bitwise_not"},
    {"abs", ResultKind::AsArguments, UNARY(sym_call("Abs", {a}), std::fabs(a), a < 0 ? whole(-SymExpr(a)) : a),
     "aten.abs"},
    {"fabs", ResultKind::Float, UNARY(as_float(sym_call("Abs", {a})), std::fabs(a), a), ""},
    {"not_", ResultKind::Bool, UNARY(sym_not(truth(a)), a == 0, a == 0), ""},
    {"not", ResultKind::Bool, UNARY(sym_not(truth(a)), a == 0, a == 0), ""},
    {"truth", ResultKind::Bool, UNARY(truth(a), a != 0, a != 0), ""},
    {"bool", ResultKind::Bool, UNARY(truth(a), a != 0, a != 0), ""},
    {"index", ResultKind::Integer, UNARY(a, no_bits(a), a), ""},
    {"fresh_size", ResultKind::Integer, UNARY(a, no_bits(a), a), ""},
    {"max", ResultKind::AsArguments, BINARY(sym_max(a, b), std::max(a, b), std::max(a, b)), ""},
    {"min", ResultKind::AsArguments, BINARY(sym_min(a, b), std::min(a, b), std::min(a, b)), ""},
    {"float", ResultKind::Float, UNARY(as_float(a), a, a), ""},
    {"int", ResultKind::Integer,
     UNARY(a.is_boolean() ? sym_call("Where", {a, 1, 0}) : sym_call("TruncToInt", {a}), std::trunc(a), a), ""},
    {"ceil", ResultKind::Integer, ROUNDING("CeilToInt")},
    {"floor", ResultKind::Integer, ROUNDING("FloorToInt")},
    {"trunc", ResultKind::Integer, ROUNDING("TruncToInt")},
    {"round", ResultKind::Integer, ROUNDING("RoundToInt")},
    {"sqrt", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_sqrt")},
    {"exp", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_exp")},
    {"log", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_log")},
    {"log2", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_log2")},
    {"sin", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_sin")},
    {"cos", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_cos")},
    {"tan", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_tan")},
    {"sinh", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_sinh")},
    {"cosh", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_cosh")},
    {"tanh", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_tanh")},
    {"asin", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_asin")},
    {"acos", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_acos")},
    {"atan", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_atan")},
    {"asinh", ResultKind::Float, FUNCTION(1, "OpaqueUnaryFn_asinh")},
};

// What does not fit the table: sums of a list, choices, whose result is an argument, and rounding to digits.
constexpr std::string_view kSum = "sum", kChoice = "ite", kRound = "round";

/// Built-in functions of Python, which FX prints without a module.
constexpr std::string_view builtins[] = {"abs", "bool", "float", "int", "max", "min", "pow", "round", "sum"};

/// The name without its module; empty for what is no function on numbers. Text graphs contain math.trunc as math_trunc,
/// the global name that FX gives it.
std::string_view short_name(std::string_view name) {
  if (name == "math.pow" || name == "math_pow") return "math.pow";
  for (std::string_view module :
       {"_operator.", "_operator_", "math.", "math_", "torch.sym_", "torch._sym_", "builtins."})
    if (name.starts_with(module)) return name.substr(module.size());
  return std::ranges::find(builtins, name) != std::end(builtins) ? name : std::string_view();
}

/// Empty for methods: x.float() and x.sum() are of tensors.
std::string_view short_name(const Op* op) {
  return op->kind == OpKind::Function ? short_name(op->name) : std::string_view();
}

const Row* find_row(const Op* op) {
  const auto it = std::ranges::find(rows, short_name(op), &Row::name);
  return it == std::end(rows) ? nullptr : it;
}

SymExpr symbolic(const Row& row, std::span<const SymExpr> x) {
  return row.sym ? row.sym(x) : sym_call(row.function, {x.begin(), x.end()});
}

double real(const Row& row, std::span<const double> x) {
  const double value = row.real ? row.real(x) : find_sym_function(row.function)->value(x);
  const auto finite = [](double v) { return std::isfinite(v); };
  if (row.kind == ResultKind::Float && !row.real && !finite(value) && std::ranges::all_of(x, finite))
    fail(fmt::format("{}({}): math domain error", row.name, x[0]));
  return value;
}

/// What decides whether two operands are a division by zero.
struct Operands {
  bool first_is_zero, second_is_zero, second_is_negative;
};
bool divides_by_zero(const Row& row, const Operands& x) {
  constexpr std::string_view divisions[] = {"floordiv", "mod", "truediv"};
  if (row.name == "pow") return x.first_is_zero && x.second_is_negative;
  return x.second_is_zero && std::ranges::find(divisions, row.name) != std::end(divisions);
}

Diagnostic unknown(const Op* op, const Node* node) {
  return unsupported("ops.unknown", fmt::format("{} is not known; `partita ops` lists the known operators", op->name),
                     place_of(node));
}

/// The row of a call. The functions take their arguments by position, and exactly so many.
Result<const Row*> row_of(const Op* op, std::size_t arguments, bool keywords, const Node* node) {
  const Row* row = find_row(op);
  if (!row) return unknown(op, node);
  if (arguments != row->arguments)
    return input_error("ops.arguments", fmt::format("{} takes {} and got {}", op->name,
                                                    count_text(row->arguments, "argument"), arguments));
  if (keywords) return input_error("ops.arguments", fmt::format("{} takes no keyword arguments", op->name));
  return row;
}

std::optional<SymExpr> as_sym(const Arg& a) {
  if (auto* i = a.get<std::int64_t>()) return SymExpr(*i);
  if (auto* b = a.get<bool>()) return SymExpr(std::int64_t{*b});
  if (auto* d = a.get<double>()) return SymExpr::real(*d);
  if (Node* n = a.node())
    if (const SymExpr* e = n->meta.sym()) return *e;
  return std::nullopt;
}

/// A result that is an integer.
Result<Value> as_whole(const Op* op, double v) {
  const std::optional<std::int64_t> n = as_integer(v);
  if (!n) return input_error("ops.arguments", fmt::format("{}: {} is beyond 64 bits", op->name, v));
  return Value(*n);
}

/// torch.sym_sum([...]) takes its terms as one list.
bool is_sum(const Op* op) {
  return short_name(op) == kSum;
}

/// torch.sym_ite(condition, a, b)
bool is_choice(const Op* op, std::size_t arguments) {
  return short_name(op) == kChoice && arguments == 3;
}

/// round(x, digits)
bool rounds_digits(const Op* op, std::size_t arguments) {
  return short_name(op) == kRound && arguments == 2;
}

Diagnostic not_one_list(const Op* op) {
  return input_error("ops.arguments", fmt::format("{} takes one list of numbers", op->name));
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
  return !short_name(name).empty() && !short_name(name).starts_with("constrain_range");  // which is an operator
}

bool gives_bool(const Node& number) {
  const SymExpr* e = number.meta.sym();
  if (!e || e->is_boolean()) return e;
  const Row* row = number.op()->kind == OpKind::Function ? find_row(number.op()) : nullptr;
  if (row && row->kind == ResultKind::Bool) return true;
  if (row && row->kind == ResultKind::Bits)
    return std::ranges::all_of(number.args(),
                               [](const Arg& a) { return a.get<bool>() || (a.node() && gives_bool(*a.node())); });
  const Schema* schema = find_schema(number.op());  // of an item of a tensor of bools that is known
  if (!schema || schema->returns.size() != 1 || schema->returns[0].type != SchemaType::Scalar) return false;
  const TensorMeta* of = number.args()[0].node() ? number.args()[0].node()->meta.tensor() : nullptr;
  return of && of->dtype == DType::Bool;
}

Result<Meta> infer_python(const Op* op, const Args& args, const Kwargs& kwargs, ShapeEnv& shapes, const Node* node) {
  if (op == Op::getitem() && args.size() == 2 && args[0].node()) {
    const Node* source = args[0].node();
    if (auto* tuple = source->meta.tuple()) {
      TRY(const std::size_t i, getitem_position(args[1], tuple->items.size()));
      return tuple->items[i];
    }
    if (const auto* name = args[1].get<std::string>(); name && is_kernel(source->op()))
      for (const auto& [parameter, tensor] : written_by_kernel(*source))
        if (parameter == *name) return tensor->meta;
  }
  SymList syms;
  const Args* list = &args;
  if (is_sum(op)) {
    if (args.size() != 1 || !args[0].get<ArgList>()) return not_one_list(op);
    list = &args[0].get<ArgList>()->items;
  }
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
  if (all && is_choice(op, syms.size())) return Meta(sym_call("Where", {truth(syms[0]), syms[1], syms[2]}));
  if (all && rounds_digits(op, syms.size()))
    return Meta(syms[0].is_float() ? sym_call("RoundDecimal", std::move(syms)) : syms[0]);
  TRY(const Row* row, row_of(op, args.size(), !kwargs.empty(), node));
  if (all) {
    if (syms.size() == 2 &&
        divides_by_zero(*row, {syms[0].is(0), syms[1].is(0), syms[1].is_int() && syms[1].as_int() < 0}))
      return input_error("ops.arguments", fmt::format("{}: division by zero", op->name));
    return Meta(shapes.simplified(symbolic(*row, syms)));
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
  if (is_sum(op)) {
    if (args.size() != 1 || !args[0].get<ValueList>()) return not_one_list(op);
    list = args[0].get<ValueList>();
  }
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  bool truths = true;
  for (const Value& v : *list) {
    truths &= v.get<bool>() != nullptr;
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
  if (is_sum(op) && numbers) return Value(std::accumulate(reals.begin(), reals.end(), 0.0));
  if (numbers && is_choice(op, reals.size())) return (*list)[reals[0] != 0 ? 1 : 2];
  if (numbers && rounds_digits(op, reals.size())) {
    const bool stays = list->front().get<std::int64_t>() && reals[1] >= 0;
    if (stays) return list->front();
    const double rounded = python_round(reals[0], static_cast<int>(std::clamp(reals[1], -400.0, 400.0)));
    if (all_whole) return as_whole(op, rounded);
    return Value(rounded);
  }
  TRY(const Row* row, row_of(op, args.size(), !kwargs.empty(), node));
  if (numbers) {
    const bool reciprocal = row->name == "pow" && all_whole && reals[1] < 0;  // 2 ** -1
    if (reals.size() == 2 && divides_by_zero(*row, {reals[0] == 0, reals[1] == 0, reals[1] < 0}))
      return input_error("ops.arguments", fmt::format("{}: division by zero", op->name));
    if (all_whole && row->whole && !reciprocal && row->kind != ResultKind::Float) {
      const std::int64_t n = row->whole(integers);
      if (row->kind == ResultKind::Bool || (row->kind == ResultKind::Bits && truths)) return Value(n != 0);
      return Value(n);
    }
    const double v = real(*row, reals);
    if (row->kind == ResultKind::Bool) return Value(v != 0);
    if (row->kind == ResultKind::Integer) return as_whole(op, v);
    return Value(v);
  }
  if (row->aten.empty()) return unknown(op, node);
  TRY(const Op* aten, resolve_values(row->aten, args));
  return evaluate(aten, std::move(args), std::move(kwargs), {}, node);
}

}  // namespace partita
