// Resolves functions, methods and Python operators to ATen calls: special cases by name, then a table of modules whose
// functions are ATen operators. Also takes apart calls that draw with a given random state.
#include "core/ops/schema/resolve.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ops/python/python_ops.h"
#include "core/ops/record/promote.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {

bool is_tensor(const Arg& arg) {
  return arg.node() && arg.node()->meta.tensor();
}

bool is_int_like(const Arg& arg) {
  if (arg.get<std::int64_t>()) return true;
  const SymExpr* e = arg.node() ? arg.node()->meta.sym() : nullptr;
  return e && !e->is_float() && !e->is_boolean();
}

namespace {

/// Python operators on tensors: the ATen operator, and the one to call when the left operand is a number (empty: none).
struct OperatorRow {
  std::string_view name, aten, reflected;
};
constexpr OperatorRow operators[] = {
    {"add", "add", "add"},
    {"sub", "sub", ""},
    {"mul", "mul", "mul"},
    {"truediv", "div", ""},
    {"floordiv", "floor_divide", "floor_divide"},
    {"mod", "remainder", "remainder"},
    {"pow", "pow", "pow"},
    {"matmul", "matmul", ""},
    {"and_", "bitwise_and", "bitwise_and"},
    {"or_", "bitwise_or", "bitwise_or"},
    {"xor", "bitwise_xor", "bitwise_xor"},
    {"lshift", "__lshift__", "bitwise_left_shift"},
    {"rshift", "__rshift__", "bitwise_right_shift"},
    {"eq", "eq", "eq"},
    {"ne", "ne", "ne"},
    {"lt", "lt", "gt"},
    {"le", "le", "ge"},
    {"gt", "gt", "lt"},
    {"ge", "ge", "le"},
    {"neg", "neg", ""},
    {"pos", "positive", ""},
    {"abs", "abs", ""},
    {"invert", "bitwise_not", ""},
    {"inv", "bitwise_not", ""},
    {"iadd", "add_", ""},
    {"isub", "sub_", ""},
    {"imul", "mul_", ""},
    {"itruediv", "div_", ""},
    {"ifloordiv", "floor_divide_", ""},
    {"imod", "remainder_", ""},
    {"ipow", "pow_", ""},
    {"iand", "bitwise_and_", ""},
    {"ior", "bitwise_or_", ""},
    {"ixor", "bitwise_xor_", ""},
};

/// Whether `reflected` takes the operands in reverse order, so that the tensor is on the left.
bool commutes(std::string_view name) {
  constexpr std::string_view others[] = {"pow", "mod", "floordiv", "lshift", "rshift"};
  return std::ranges::find(others, name) == std::end(others);
}

Arg call_operator(Builder& b, std::string_view name, const Args& args, const Kwargs& kwargs) {
  if (name == "getitem" && args.size() == 2) {
    if (is_tensor(args[0])) return get_item(b, args[0].node(), args[1]);
    const auto* list = args[0].get<ArgList>();
    const auto* i = args[1].get<std::int64_t>();
    if (list && i) {
      auto count = static_cast<std::int64_t>(list->items.size());
      std::int64_t at = *i < 0 ? *i + count : *i;
      if (at < 0 || at >= count) fail(fmt::format("index {} is out of range for a list of {} items", *i, count));
      return list->items[static_cast<std::size_t>(at)];
    }
    return b.call("_operator.getitem", args);
  }
  if (name == "setitem" && args.size() == 3 && is_tensor(args[0])) return set_item(b, args[0].node(), args[1], args[2]);
  bool tensors = std::any_of(args.begin(), args.end(), is_tensor);
  if (!tensors) {
    // x += 1 on a size makes a new number.
    std::string_view plain =
        name.size() > 1 && name[0] == 'i' && name != "invert" && name != "inv" ? name.substr(1) : name;
    return b.call(fmt::format("_operator.{}", plain == "and" ? "and_" : plain == "or" ? "or_" : plain), args, kwargs);
  }
  for (const OperatorRow& row : operators) {
    if (row.name != name) continue;
    if (args.size() == 2 && !is_tensor(args[0])) {
      if (name == "sub") return b.call("aten.rsub.Scalar", {args[1], args[0]});
      if (name == "truediv") return b.call("aten.mul.Tensor", {b.call("aten.reciprocal.default", {args[1]}), args[0]});
      if (name == "floordiv") return call_by_schema(b, "aten.floor_divide", args, {});
      if (row.reflected.empty()) fail_unsupported(fmt::format("{} of a number and a tensor", name));
      Args operands = commutes(name) ? Args{args[1], args[0]} : args;
      return b.call(fmt::format("aten.{}", row.reflected), operands, kwargs);
    }
    return b.call(fmt::format("aten.{}", row.aten), args, kwargs);
  }
  const std::string called =
      name.find('.') != std::string_view::npos ? std::string(name) : fmt::format("_operator.{}", name);
  throw Raise{unsupported("ops.unknown", called + " on tensors is not known")};
}

/// Modules whose functions are ATen operators, and the prefix that the operators' names have.
struct ModuleRow {
  std::string_view module, prefix;
};
constexpr ModuleRow modules[] = {
    {"torch._VariableFunctionsClass.", ""},
    {"torch._C._VariableFunctions.", ""},
    {"torch._C._nn.", ""},
    {"torch._VF.", ""},
    {"torch._C._linalg.", ""},
    {"torch._C._fft.", ""},
    {"torch._C._special.", ""},
    {"torch._C._nested.", ""},
    {"torch.linalg.", "linalg_"},
    {"torch.fft.", "fft_"},
    {"torch.special.", "special_"},
    {"torch.functional.", ""},
    {"torch.Tensor.", ""},
    {"torch._C.TensorBase.", ""},
    {"torch.", ""},
};

[[noreturn]] void fail_unknown(std::string_view kind, std::string_view name) {
  throw Raise{unsupported("ops.unknown", fmt::format("the {} {} is not known; graphs of ATen calls have its parts in "
                                                     "its place (torch.export, TORCH_LOGS=aot_graphs)",
                                                     kind, name))};
}

/// Calls that only concern the Python process and have no effect on values.
bool is_bookkeeping(std::string_view name) {
  constexpr std::string_view names[] = {
      "torch._C._log_api_usage_once", "torch._functorch.predispatch.lazy_load_decompositions",
      "torch._C._set_grad_enabled", "torch__dynamo_variables_builtin__lower_version_count_by_1"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Arg call_function(Builder& b, std::string_view name, const Args& args, const Kwargs& kwargs) {
  // FX gives functions that it cannot import by a dotted name a global one.
  constexpr std::string_view method_as_global = "torch_Tensor_";
  if (name.starts_with(method_as_global))
    return call_function(b, fmt::format("torch.Tensor.{}", name.substr(method_as_global.size())), args, kwargs);
  // Text graphs contain operator.abs as _operator_abs, and abs of a tensor is that, too.
  if (name.starts_with("_operator.") || name.starts_with("_operator_"))
    return call_operator(b, name.substr(10), args, kwargs);
  if (is_python_arithmetic(name) && std::ranges::any_of(args, is_tensor)) return call_operator(b, name, args, kwargs);
  if (is_python_arithmetic(name)) return b.call(name, args, kwargs);
  if (is_bookkeeping(name)) return Arg();
  if (name == "torch.Size" && args.size() == 1 && args[0].get<ArgList>()) return args[0];
  if (name == "getattr" && args.size() == 2 && args[1].get<std::string>())
    return get_attribute(b, args[0], *args[1].get<std::string>());
  if (name == "torch._C._autograd._get_data_attr" && args.size() == 1) return get_attribute(b, args[0], "data");
  if (const auto dtype = legacy_dtype(name)) return legacy_tensor(b, *dtype, args, kwargs);
  if (auto result = call_python_function(b, name, args, kwargs)) return *result;
  // atleast_2d(x, y) means atleast_2d([x, y]).
  if ((name.starts_with("torch.functional.atleast_") || name.starts_with("torch.atleast_")) && args.size() != 1)
    return call_function(b, name, {Arg::list(args)}, kwargs);
  for (const ModuleRow& row : modules) {
    if (!name.starts_with(row.module)) continue;
    std::string base = fmt::format("aten.{}{}", row.prefix, name.substr(row.module.size()));
    if (!find_overloads(base).empty()) return call_by_schema(b, base, args, kwargs);
  }
  fail_unknown("function", name);
}

/// x.__rsub__(y) is y - x, and x.__radd__(y) x + y, since the order decides the layout of a sum of tensors. Nullopt
/// when the method is none of these.
std::optional<Arg> call_reflected(Builder& b, std::string_view method, const Args& args) {
  if (!method.starts_with("__r") || !method.ends_with("__") || args.size() != 2) return std::nullopt;
  std::string_view name = method.substr(3, method.size() - 5);
  if (name == "div") name = "truediv";
  const Node* const self = args[0].node();
  if (name == "truediv" && self && self->meta.tensor())
    return b.call("aten.mul.Tensor", {b.call("aten.reciprocal.default", {args[0]}), args[1]});
  if (name == "and" || name == "or") return call_operator(b, fmt::format("{}_", name), args, {});
  if (name == "xor" || name == "add" || name == "mul") return call_operator(b, name, args, {});
  if (std::ranges::find(operators, name, &OperatorRow::name) == std::end(operators)) return std::nullopt;
  return call_operator(b, name, {args[1], args[0]}, {});
}

constexpr std::string_view saves_state = "higher_order.run_and_save_rng_state",
                           takes_state = "higher_order.run_with_rng_state";

bool takes_rng_state(const Op* op) {
  return op->name == saves_state || op->name == takes_state;
}

/// run_and_save_rng_state(op, *args) gives (state, op(*args)), run_with_rng_state(state, op, *args) op(*args).
Arg call_with_state(Builder& b, const Node& node) {
  constexpr std::string_view prefix = "torch.ops.";
  const bool saves = node.op()->name == saves_state;
  const Args& args = node.args();
  const std::size_t at = saves ? 0 : 1;
  const ArgName* op = at < args.size() ? args[at].get<ArgName>() : nullptr;
  if (!op || !op->text.starts_with(prefix)) fail(node.op()->name + " takes an operator");
  Node* const now = b.call("partita.get_rng_state.default", {});
  const auto check = [&](const Node* state) {
    const TensorMeta* t = state ? state->meta.tensor() : nullptr;
    // PyTorch's logs have a symbol for the size: the run then sees whose state it is.
    const bool says = t && std::ranges::all_of(t->sizes, [](const SymExpr& size) { return size.is_int(); });
    if (says && t->sizes != b.tensor(now).sizes)
      fail_unsupported(node.op()->name + " of a generator that is not the CPU's");
  };
  if (saves)
    for (const Node* part : node.users())
      if (part->is(Op::getitem()) && part->args()[1] == Arg(0)) check(part);
  if (!saves) {
    check(args[0].node());
    b.call("partita.set_rng_state.default", {args[0]});
  }
  Node* const made = b.call(std::string_view(op->text).substr(prefix.size()),
                            Args(args.begin() + static_cast<std::ptrdiff_t>(at) + 1, args.end()), node.kwargs());
  if (saves) return Arg::tuple({now, made});
  b.call("partita.set_rng_state.default", {now});
  return made;
}

Arg resolve_call(Builder& b, const Node& node) {
  const Op* op = node.op();
  switch (op->kind) {
    case OpKind::Function:
      return call_function(b, op->name, node.args(), node.kwargs());
    case OpKind::Method: {
      if (auto result = call_method(b, op->name, node.args(), node.kwargs())) return *result;
      if (auto result = call_reflected(b, op->name, node.args())) return *result;
      std::string base = "aten." + op->name;
      if (find_overloads(base).empty()) fail_unknown("method", op->name);
      return call_by_schema(b, base, node.args(), node.kwargs());
    }
    case OpKind::Torch:
      if (is_auto_functionalized(op)) return call_auto_functionalized(b, node);
      if (takes_rng_state(op)) return call_with_state(b, node);
      if (is_flex_attention(op)) return flex_attention(b, node);
      if (is_associative_scan(op)) return associative_scan(b, node);
      return call_by_schema(b, op->name, node.args(), node.kwargs(), true);
    default:
      CHECK(false, "not a call: " + op->name);
  }
}

}  // namespace

bool is_taken_apart(const Op* op) {
  if (op->kind != OpKind::Torch) return false;
  const bool names_overload = find_schema(op) || find_overloads(op->name).empty();
  return takes_rng_state(op) || (op->meaning && is_auto_functionalized(op)) || is_flex_attention(op) ||
         is_associative_scan(op) || !names_overload;
}

Result<Arg> resolve(Node& node) {
  if (node.op()->kind == OpKind::Torch && !is_taken_apart(node.op())) return Arg(&node);
  Builder build(node.graph(), &node, node.origin);
  Result<Arg> done = catch_raised<Arg>([&] { return resolve_call(build, node); });
  if (!done && done.error().where.node.empty()) {
    Where& where = done.error().where;
    where.graph = node.graph().name;
    where.node = node.name();
    where.origin = origin_text(node);
  }
  return done;
}

}  // namespace partita
