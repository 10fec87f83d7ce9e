// Accessors of FakeCall and EvalCall: they find an argument by its schema name, convert it, and fail when it is of
// another kind. Symbolic numbers that must be known take guards.
#include "core/ops/record/call.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/sym/integer.h"

namespace partita {

void fail(std::string message) {
  throw Raise{input_error("ops.arguments", std::move(message))};
}
void fail_unsupported(std::string message) {
  throw Raise{unsupported("ops.unsupported", "not supported: " + message)};
}

double as_double(const Number& n) {
  return std::visit(
      []<class T>(const T& v) -> double {
        if constexpr (std::is_same_v<T, std::complex<double>>)
          return v.real();
        else
          return static_cast<double>(v);
      },
      n);
}

std::int64_t as_int(const Number& n) {
  if (const auto* i = std::get_if<std::int64_t>(&n)) return *i;
  const auto whole = as_integer(as_double(n));
  if (!whole) fail("value cannot be converted to type int64_t without overflow");
  return *whole;
}

DType number_dtype(const Number& n) {
  static constexpr DType types[] = {DType::Bool, DType::Int64, DType::Float32, DType::Complex64};
  return types[n.index()];
}

namespace {

std::size_t position(const Schema& schema, std::string_view name) {
  int i = schema.index_of(name);
  CHECK(i >= 0, schema.name + " has no argument " + std::string(name));
  return static_cast<std::size_t>(i);
}

/// Reads a literal from an Arg (for FakeCall) or a Value (for EvalCall): both variants have the same alternatives for
/// literals.
std::optional<Number> literal_number(const auto& v) {
  if (auto* b = v.template get<bool>()) return Number(*b);
  if (auto* i = v.template get<std::int64_t>()) return Number(*i);
  if (auto* d = v.template get<double>()) return Number(*d);
  if (auto* c = v.template get<std::complex<double>>()) return Number(*c);
  return std::nullopt;
}

}  // namespace

std::optional<Number> as_number(const Arg& arg) {
  return literal_number(arg);
}

template <class Item>
void BoundArguments<Item>::wrong(std::string_view name, const char* wanted) const {
  fail(fmt::format("{}: argument '{}' must be {}", schema.name, name, wanted));
}

template <class Item>
const Item& BoundArguments<Item>::arg(std::string_view name) const {
  return args[position(schema, name)];
}

template <class Item>
bool BoundArguments<Item>::boolean(std::string_view name) const {
  if (auto* b = arg(name).template get<bool>()) return *b;
  if (auto* i = arg(name).template get<std::int64_t>()) return *i != 0;
  if constexpr (std::is_same_v<Item, Arg>)
    if (const Node* n = arg(name).node(); n && n->meta.sym())
      fail_unsupported(fmt::format("{}: argument '{}' is known only at run time", schema.name, name));
  wrong(name, "a bool");
}

template <class Item>
std::vector<bool> BoundArguments<Item>::booleans(std::string_view name) const {
  std::vector<bool> out;
  auto add = [&](const std::vector<Item>& items) {
    for (const Item& item : items) {
      const bool* b = item.template get<bool>();
      if (!b) wrong(name, "a list of bools");
      out.push_back(*b);
    }
  };
  if constexpr (std::is_same_v<Item, Arg>) {
    if (auto* list = arg(name).template get<ArgList>()) return add(list->items), out;
  } else {
    if (auto* list = arg(name).template get<ValueList>()) return add(*list), out;
  }
  wrong(name, "a list of bools");
}

template class BoundArguments<Arg>;
template class BoundArguments<Value>;

bool FakeCall::is_tensor(std::string_view name) const {
  Node* n = arg(name).node();
  return n && n->meta.tensor();
}

const TensorMeta& FakeCall::tensor(std::string_view name) const {
  Node* n = arg(name).node();
  if (!n) wrong(name, "a tensor");
  return Builder::tensor(n);
}

std::vector<const TensorMeta*> FakeCall::tensors(std::string_view name) const {
  auto* list = arg(name).get<ArgList>();
  if (!list) wrong(name, "a list of tensors");
  std::vector<const TensorMeta*> out;
  for (const Arg& a : list->items) {
    if (!a.is_none() && !a.node()) wrong(name, "a list of tensors");
    out.push_back(a.is_none() ? nullptr : &Builder::tensor(a));
  }
  return out;
}

namespace {

std::optional<SymExpr> sym_of(const Arg& a) {
  if (auto* i = a.get<std::int64_t>()) return *i;
  if (auto* b = a.get<bool>()) return std::int64_t{*b};
  if (Node* n = a.node())
    if (const SymExpr* e = n->meta.sym()) return *e;
  return std::nullopt;
}

}  // namespace

SymExpr FakeCall::sym(std::string_view name) const {
  if (auto e = sym_of(arg(name))) return *e;
  wrong(name, "an integer");
}

SymList FakeCall::syms(std::string_view name) const {
  const Arg& a = arg(name);
  SymList out;
  if (auto* list = a.get<ArgList>()) {
    for (const Arg& item : list->items) {
      const auto e = sym_of(item);
      if (!e) wrong(name, "an integer");
      out.push_back(*e);
    }
    return out;
  }
  if (a.is_none()) return out;
  int n = schema.args[position(schema, name)].list_size;
  out.assign(static_cast<std::size_t>(std::max(n, 1)), sym(name));
  return out;
}

std::int64_t FakeCall::integer(std::string_view name) const {
  SymExpr e = sym(name);
  if (e.is_int()) return e.as_int();
  auto hint = shapes.hint(e);
  if (!hint)
    fail_unsupported(
        fmt::format("{}: argument '{}' is {}, which is known only at run time", schema.name, name, e.str()));
  unwrap(shapes.evaluate(sym_eq(e, *hint), fmt::format("{} needs '{}' as a number", schema.name, name)));
  return *hint;
}

Sizes FakeCall::integers(std::string_view name) const {
  Sizes out;
  for (SymExpr e : syms(name)) {
    if (!e.is_int()) {
      auto hint = shapes.hint(e);
      if (!hint)
        fail_unsupported(
            fmt::format("{}: argument '{}' holds {}, which is known only at run time", schema.name, name, e.str()));
      unwrap(shapes.evaluate(sym_eq(e, *hint), fmt::format("{} needs '{}' as numbers", schema.name, name)));
      e = *hint;
    }
    out.push_back(e.as_int());
  }
  return out;
}

Number FakeCall::number(std::string_view name) const {
  if (const auto known = known_number(name)) return *known;
  const SymExpr e = *arg(name).node()->meta.sym();
  if (e.is_float() || e.is_boolean())
    fail_unsupported(
        fmt::format("{}: argument '{}' is {}, which is known only at run time", schema.name, name, e.str()));
  return integer(name);
}

std::optional<Number> FakeCall::known_number(std::string_view name) const {
  const Arg& a = arg(name);
  if (auto n = literal_number(a)) return *n;
  const SymExpr* e = a.node() ? a.node()->meta.sym() : nullptr;
  if (!e) wrong(name, "a number");
  if (e->is_int()) return e->as_int();
  return e->kind() == SymKind::Float ? std::optional<Number>(e->as_float()) : std::nullopt;
}

DType FakeCall::dtype_of_number(std::string_view name) const {
  if (const auto known = known_number(name)) return number_dtype(*known);
  const SymExpr e = *arg(name).node()->meta.sym();
  return e.is_float() ? DType::Float32 : e.is_boolean() ? DType::Bool : DType::Int64;
}

bool FakeCall::test(SymExpr condition, const char* reason) const {
  return unwrap(shapes.evaluate(condition, reason));
}

bool EvalCall::is_tensor(std::string_view name) const {
  return arg(name).get<Tensor>();
}

const Tensor& EvalCall::tensor(std::string_view name) const {
  if (auto* t = arg(name).get<Tensor>()) return *t;
  wrong(name, "a tensor");
}

std::vector<const Tensor*> EvalCall::tensors(std::string_view name) const {
  auto* list = arg(name).get<ValueList>();
  if (!list) wrong(name, "a list of tensors");
  std::vector<const Tensor*> out;
  for (const Value& v : *list) {
    if (!v.is_none() && !v.get<Tensor>()) wrong(name, "a list of tensors");
    out.push_back(v.get<Tensor>());
  }
  return out;
}

std::int64_t EvalCall::integer(std::string_view name) const {
  if (auto* i = arg(name).get<std::int64_t>()) return *i;
  if (auto* b = arg(name).get<bool>()) return *b;
  wrong(name, "an integer");
}

Sizes EvalCall::integers(std::string_view name) const {
  const Value& v = arg(name);
  if (v.is_none()) return {};
  if (auto* list = v.get<ValueList>()) {
    Sizes out;
    for (const Value& item : *list) {
      auto* i = item.get<std::int64_t>();
      if (!i) wrong(name, "a list of integers");
      out.push_back(*i);
    }
    return out;
  }
  int n = schema.args[position(schema, name)].list_size;
  return Sizes(static_cast<std::size_t>(std::max(n, 1)), integer(name));
}

Number EvalCall::number(std::string_view name) const {
  if (auto n = literal_number(arg(name))) return *n;
  wrong(name, "a number");
}

bool GradCall::want(std::string_view name) const {
  return wants[position(schema, name)];
}

}  // namespace partita
