// Picks an overload by the kinds of the arguments. Of the schemas that fit, those that can run come first; among these
// .Tensor goes before .default, .default before others, and a composite wins a tie.
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/python/python_ops.h"
#include "core/ops/schema/functional_variant.h"
#include "core/ops/schema/resolve.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

enum class ArgumentKind : unsigned char {
  None,
  Tensor,
  Int,
  SymInt,
  Float,
  SymFloat,
  Bool,
  SymBool,
  Complex,
  Str,
  DType,
  Device,
  Layout,
  MemoryFormat,
  List,
  Other
};

/// An argument as PyTorch's parser sees it: its kind and, for a list, those of its items.
struct Seen {
  ArgumentKind kind = ArgumentKind::Other;
  std::vector<Seen> items;
};

Seen see(const Arg& a) {
  struct Visitor {
    Seen operator()(std::monostate) const { return {ArgumentKind::None, {}}; }
    Seen operator()(bool) const { return {ArgumentKind::Bool, {}}; }
    Seen operator()(std::int64_t) const { return {ArgumentKind::Int, {}}; }
    Seen operator()(double) const { return {ArgumentKind::Float, {}}; }
    Seen operator()(std::complex<double>) const { return {ArgumentKind::Complex, {}}; }
    Seen operator()(const std::string&) const { return {ArgumentKind::Str, {}}; }
    Seen operator()(Node* n) const {
      if (const SymExpr* e = n->meta.sym())
        return {gives_bool(*n)  ? ArgumentKind::SymBool
                : e->is_float() ? ArgumentKind::SymFloat
                                : ArgumentKind::SymInt,
                {}};
      if (auto* tuple = n->meta.tuple())
        return {ArgumentKind::List, std::vector<Seen>(tuple->items.size(), {ArgumentKind::Tensor, {}})};
      return {ArgumentKind::Tensor, {}};
    }
    Seen operator()(DType) const { return {ArgumentKind::DType, {}}; }
    Seen operator()(const Device&) const { return {ArgumentKind::Device, {}}; }
    Seen operator()(Layout) const { return {ArgumentKind::Layout, {}}; }
    Seen operator()(MemoryFormat) const { return {ArgumentKind::MemoryFormat, {}}; }
    Seen operator()(const ArgList& l) const {
      Seen s{ArgumentKind::List, {}};
      for (const Arg& item : l.items) s.items.push_back(see(item));
      return s;
    }
    Seen operator()(const ArgSlice&) const { return {}; }
    Seen operator()(const ArgDict&) const { return {}; }
    Seen operator()(const ArgName&) const { return {}; }
  };
  return std::visit(Visitor(), a.v);
}

Seen see(const Value& v) {
  static constexpr ArgumentKind kinds[] = {ArgumentKind::None,   ArgumentKind::Bool,         ArgumentKind::Int,
                                           ArgumentKind::Float,  ArgumentKind::Complex,      ArgumentKind::Str,
                                           ArgumentKind::Tensor, ArgumentKind::DType,        ArgumentKind::Device,
                                           ArgumentKind::Layout, ArgumentKind::MemoryFormat, ArgumentKind::List};
  Seen s{kinds[v.v.index()], {}};
  if (auto* list = v.get<ValueList>())
    for (const Value& item : *list) s.items.push_back(see(item));
  return s;
}

}  // namespace

bool numbers_are_tensors(std::string_view base) {
  static constexpr std::string_view names[] = {"add",      "sub",      "mul",         "div",          "divide",
                                               "multiply", "subtract", "true_divide", "floor_divide", "copy"};
  base.remove_prefix(std::min(base.size(), base.find('.') + 1));
  if (base.ends_with("_")) base.remove_suffix(1);
  return std::find(std::begin(names), std::end(names), base) != std::end(names);
}

namespace {

bool is_integer(ArgumentKind k) {
  return k == ArgumentKind::Int || k == ArgumentKind::SymInt;
}
bool is_number(ArgumentKind k) {
  return k >= ArgumentKind::Int && k <= ArgumentKind::Complex;
}

bool fits_one(SchemaType type, ArgumentKind k, bool numbers_as_tensors) {
  switch (type) {
    case SchemaType::Tensor:
      return k == ArgumentKind::Tensor || (numbers_as_tensors && is_number(k));
    case SchemaType::Int:
    case SchemaType::SymInt:
      return is_integer(k);
    case SchemaType::Float:
      return is_integer(k) || k == ArgumentKind::Float || k == ArgumentKind::SymFloat || k == ArgumentKind::Bool ||
             k == ArgumentKind::SymBool;
    case SchemaType::Bool:
    case SchemaType::SymBool:
      return k == ArgumentKind::Bool || k == ArgumentKind::SymBool;
    case SchemaType::Scalar:
      return is_number(k);
    case SchemaType::Str:
      return k == ArgumentKind::Str;
    case SchemaType::Dtype:
      return k == ArgumentKind::DType;
    case SchemaType::Device:
      return k == ArgumentKind::Device || k == ArgumentKind::Str;
    case SchemaType::Layout:
      return k == ArgumentKind::Layout;
    case SchemaType::MemoryFormat:
      return k == ArgumentKind::MemoryFormat;
    case SchemaType::Dimname:
    case SchemaType::Generator:
    case SchemaType::Stream:
      return false;
    case SchemaType::Other:  // of `Any`, which is a process group: graphs give its name
      return k == ArgumentKind::Str;
  }
  return false;
}

/// What a call of torch.ops may also give by its number.
bool is_enumeration(SchemaType type) {
  return type == SchemaType::Dtype || type == SchemaType::Layout || type == SchemaType::MemoryFormat;
}

/// What an operator takes beside what its schema says.
struct Leniency {
  bool numbers_as_tensors = false, numbered_enumerations = false;
};

bool fits(const SchemaArg& arg, const Seen& s, Leniency also) {
  if (s.kind == ArgumentKind::None) return arg.is_optional || (arg.has_default && arg.default_value.is_none());
  if (also.numbered_enumerations && s.kind == ArgumentKind::Int && is_enumeration(arg.type)) return true;
  if (!arg.is_list) return fits_one(arg.type, s.kind, also.numbers_as_tensors);
  if (s.kind != ArgumentKind::List) return arg.list_size > 0 && fits_one(arg.type, s.kind, false);
  return std::all_of(s.items.begin(), s.items.end(), [&](const Seen& item) {
    return (item.kind == ArgumentKind::None && arg.items_optional) || fits_one(arg.type, item.kind, false);
  });
}

/// Whether a schema accepts the arguments.
bool matches(const Schema& schema, const std::vector<Seen>& positional,
             const std::vector<std::pair<std::string, Seen>>& named, bool numbered_enumerations) {
  // Even for operators that take numbers as tensors, the first argument must be a tensor.
  const auto also = [&, as_tensors = numbers_are_tensors(schema.base)](bool first) {
    return Leniency{as_tensors && !first, numbered_enumerations};
  };
  std::vector<bool> given(schema.args.size());
  if (positional.size() > schema.args.size()) return false;
  for (std::size_t i = 0; i < positional.size(); ++i) {
    const SchemaArg& arg = schema.args[i];
    if (arg.keyword_only || !fits(arg, positional[i], also(i == 0))) return false;
    given[i] = true;
  }
  for (const auto& [key, seen] : named) {
    int i = schema.index_of(key);
    if (i < 0 || given[static_cast<std::size_t>(i)] ||
        !fits(schema.args[static_cast<std::size_t>(i)], seen, also(i == 0)))
      return false;
    given[static_cast<std::size_t>(i)] = true;
  }
  for (std::size_t i = 0; i < schema.args.size(); ++i)
    if (!given[i] && !schema.args[i].has_default && !schema.args[i].is_optional) return false;
  return true;
}

Result<const Schema*> pick(std::string_view base, const std::vector<Seen>& positional,
                           const std::vector<std::pair<std::string, Seen>>& named, bool numbered_enumerations = false) {
  const auto& overloads = find_overloads(base);
  if (overloads.empty()) return unsupported("ops.unknown", fmt::format("no operator {}", base));
  const Schema* best = nullptr;
  // Overloads of TorchScript alone (copy_.Tensor, to.prim_dtype), which nothing can run, come last.
  auto rank = [](const Schema& s) {
    const Op* op = Op::torch(s.name);
    const int known = find_record(op) || functional_variant(op) ? 0 : 6;
    // var.dim, with its `unbiased`, comes before var.correction, as PyTorch declares them.
    return known +
           (s.name.ends_with(".Tensor")    ? 0
            : s.name.ends_with(".default") ? 2
                                           : 4) +
           (s.composite_implicit ? 0 : 1);
  };
  for (const Schema* s : overloads) {
    if (!matches(*s, positional, named, numbered_enumerations)) continue;
    if (!best || rank(*s) < rank(*best)) best = s;
  }
  if (best) return best;
  std::string names;
  for (const Schema* s : overloads) names += (names.empty() ? "" : ", ") + s->name;
  return input_error("ops.overload", fmt::format("no overload of {} takes these arguments; there are {}", base, names));
}

}  // namespace

Result<ResolvedCall> resolve_overload(std::string_view base, const Args& args, const Kwargs& kwargs,
                                      bool numbered_enumerations) {
  std::vector<Seen> positional;
  std::vector<std::pair<std::string, Seen>> named;
  for (const Arg& a : args) positional.push_back(see(a));
  for (const auto& [key, a] : kwargs) named.emplace_back(key, see(a));
  TRY(const Schema* schema, pick(base, positional, named, numbered_enumerations));
  return ResolvedCall{Op::torch(schema->name), args, kwargs};
}

Result<const Op*> resolve_values(std::string_view base, const std::vector<Value>& args) {
  std::vector<Seen> positional;
  for (const Value& v : args) positional.push_back(see(v));
  TRY(const Schema* schema, pick(base, positional, {}));
  return Op::torch(schema->name);
}

}  // namespace partita
