#include "core/ops/call.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/check.h"

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
  return std::visit(
      []<class T>(const T& v) -> std::int64_t {
        if constexpr (std::is_same_v<T, std::complex<double>>)
          return static_cast<std::int64_t>(v.real());
        else
          return static_cast<std::int64_t>(v);
      },
      n);
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

[[noreturn]] void wrong(const Schema& schema, std::string_view name, const char* wanted) {
  fail(fmt::format("{}: argument '{}' must be {}", schema.name, name, wanted));
}

/// Reads a literal from an Arg (for FakeCall) or a Value (for EvalCall): both variants have the same alternatives for
/// literals.
template <class V>
std::optional<Number> literal_number(const V& v) {
  if (auto* b = v.template get<bool>()) return Number(*b);
  if (auto* i = v.template get<std::int64_t>()) return Number(*i);
  if (auto* d = v.template get<double>()) return Number(*d);
  if (auto* c = v.template get<std::complex<double>>()) return Number(*c);
  return std::nullopt;
}

template <class V>
std::string literal_string(const Schema& schema, std::string_view name, const V& v) {
  if (auto* s = v.template get<std::string>()) return *s;
  wrong(schema, name, "a string");
}

template <class T, class V>
std::optional<T> optional_literal(const Schema& schema, std::string_view name, const V& v, const char* wanted) {
  if (v.is_none()) return std::nullopt;
  if (auto* t = v.template get<T>()) return *t;
  wrong(schema, name, wanted);
}

}  // namespace

std::optional<Number> as_number(const Arg& arg) {
  return literal_number(arg);
}

const Arg& FakeCall::arg(std::string_view name) const {
  return args[position(schema, name)];
}
bool FakeCall::has(std::string_view name) const {
  return !arg(name).is_none();
}

bool FakeCall::is_tensor(std::string_view name) const {
  Node* n = arg(name).node();
  return n && n->meta.tensor();
}

const TensorMeta& FakeCall::tensor(std::string_view name) const {
  Node* n = arg(name).node();
  if (!n) wrong(schema, name, "a tensor");
  return Builder::tensor(n);
}

std::vector<const TensorMeta*> FakeCall::tensors(std::string_view name) const {
  auto* list = arg(name).get<ArgList>();
  if (!list) wrong(schema, name, "a list of tensors");
  std::vector<const TensorMeta*> out;
  for (const Arg& a : list->items) {
    if (!a.is_none() && !a.node()) wrong(schema, name, "a list of tensors");
    out.push_back(a.is_none() ? nullptr : &Builder::tensor(a));
  }
  return out;
}

namespace {

SymExpr sym_of(const Schema& schema, std::string_view name, const Arg& a) {
  if (auto* i = a.get<std::int64_t>()) return *i;
  if (auto* b = a.get<bool>()) return std::int64_t{*b};
  if (Node* n = a.node())
    if (const SymExpr* e = n->meta.sym()) return *e;
  wrong(schema, name, "an integer");
}

}  // namespace

SymExpr FakeCall::sym(std::string_view name) const {
  return sym_of(schema, name, arg(name));
}

SymList FakeCall::syms(std::string_view name) const {
  const Arg& a = arg(name);
  SymList out;
  if (auto* list = a.get<ArgList>()) {
    for (const Arg& item : list->items) out.push_back(sym_of(schema, name, item));
    return out;
  }
  if (a.is_none()) return out;
  int n = schema.args[position(schema, name)].list_size;
  out.assign(static_cast<std::size_t>(std::max(n, 1)), sym_of(schema, name, a));
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

bool FakeCall::boolean(std::string_view name) const {
  if (auto* b = arg(name).get<bool>()) return *b;
  if (auto* i = arg(name).get<std::int64_t>()) return *i != 0;
  wrong(schema, name, "a bool");
}

Number FakeCall::number(std::string_view name) const {
  const Arg& a = arg(name);
  if (auto n = literal_number(a)) return *n;
  if (Node* node = a.node())
    if (const SymExpr* e = node->meta.sym()) {
      if (e->is_int()) return e->as_int();
      if (e->kind() == SymKind::Float) return e->as_float();
      // A fake needs only the kind of the number. Its value is known when the graph runs.
      if (e->is_float()) return 0.0;
      if (e->is_boolean()) return false;
      return shapes.hint(*e).value_or(0);
    }
  wrong(schema, name, "a number");
}

std::string FakeCall::string(std::string_view name) const {
  return literal_string(schema, name, arg(name));
}
std::optional<DType> FakeCall::dtype(std::string_view name) const {
  return optional_literal<DType>(schema, name, arg(name), "a dtype");
}
std::optional<Device> FakeCall::device(std::string_view name) const {
  return optional_literal<Device>(schema, name, arg(name), "a device");
}
std::optional<MemoryFormat> FakeCall::memory_format(std::string_view name) const {
  return optional_literal<MemoryFormat>(schema, name, arg(name), "a memory format");
}

bool FakeCall::test(SymExpr condition, const char* reason) const {
  return unwrap(shapes.evaluate(condition, reason));
}

const Value& EvalCall::arg(std::string_view name) const {
  return args[position(schema, name)];
}
bool EvalCall::has(std::string_view name) const {
  return !arg(name).is_none();
}
bool EvalCall::is_tensor(std::string_view name) const {
  return arg(name).get<Tensor>();
}

const Tensor& EvalCall::tensor(std::string_view name) const {
  if (auto* t = arg(name).get<Tensor>()) return *t;
  wrong(schema, name, "a tensor");
}

std::vector<const Tensor*> EvalCall::tensors(std::string_view name) const {
  auto* list = arg(name).get<ValueList>();
  if (!list) wrong(schema, name, "a list of tensors");
  std::vector<const Tensor*> out;
  for (const Value& v : *list) {
    if (!v.is_none() && !v.get<Tensor>()) wrong(schema, name, "a list of tensors");
    out.push_back(v.get<Tensor>());
  }
  return out;
}

std::int64_t EvalCall::integer(std::string_view name) const {
  if (auto* i = arg(name).get<std::int64_t>()) return *i;
  if (auto* b = arg(name).get<bool>()) return *b;
  wrong(schema, name, "an integer");
}

Sizes EvalCall::integers(std::string_view name) const {
  const Value& v = arg(name);
  if (v.is_none()) return {};
  if (auto* list = v.get<ValueList>()) {
    Sizes out;
    for (const Value& item : *list) {
      auto* i = item.get<std::int64_t>();
      if (!i) wrong(schema, name, "a list of integers");
      out.push_back(*i);
    }
    return out;
  }
  int n = schema.args[position(schema, name)].list_size;
  return Sizes(static_cast<std::size_t>(std::max(n, 1)), integer(name));
}

bool EvalCall::boolean(std::string_view name) const {
  if (auto* b = arg(name).get<bool>()) return *b;
  if (auto* i = arg(name).get<std::int64_t>()) return *i != 0;
  wrong(schema, name, "a bool");
}

Number EvalCall::number(std::string_view name) const {
  if (auto n = literal_number(arg(name))) return *n;
  wrong(schema, name, "a number");
}

std::string EvalCall::string(std::string_view name) const {
  return literal_string(schema, name, arg(name));
}
std::optional<DType> EvalCall::dtype(std::string_view name) const {
  return optional_literal<DType>(schema, name, arg(name), "a dtype");
}
std::optional<MemoryFormat> EvalCall::memory_format(std::string_view name) const {
  return optional_literal<MemoryFormat>(schema, name, arg(name), "a memory format");
}

bool GradCall::want(std::string_view name) const {
  return wants[position(schema, name)];
}

}  // namespace partita
