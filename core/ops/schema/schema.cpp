#include "core/ops/schema/schema.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/ir/graph.h"
#include "core/ops/record/user_operator.h"

// The table is linked into the program, so no file has to be found at run time. A row is parsed when it is first asked
// for.
asm(".section .rodata\n"
    ".global partita_schemas_begin\n"
    ".global partita_schemas_end\n"
    "partita_schemas_begin:\n"
    ".incbin \"" PARTITA_SCHEMAS
    "\"\n"
    "partita_schemas_end:\n"
    ".previous\n");
extern "C" const char partita_schemas_begin[];
extern "C" const char partita_schemas_end[];

namespace partita {
namespace {

/// The dtype of a c10::ScalarType (torch/headeronly/core/ScalarType.h), by which schemas and calls of torch.ops may
/// number dtypes. The first ones are one less than the code in a .pt2 archive. Nullopt for quantised and other dtypes
/// that Partita does not have.
std::optional<DType> dtype_from_c10(std::int64_t code) {
  constexpr std::int64_t last_of_pt2 = 11;  // bool
  if (code >= 0 && code <= last_of_pt2) return dtype_from_pt2(static_cast<int>(code) + 1);
  constexpr std::pair<std::int64_t, DType> others[] = {
      {15, DType::BFloat16}, {23, DType::Float8E5M2}, {24, DType::Float8E4M3FN},
      {27, DType::UInt16},   {28, DType::UInt32},     {29, DType::UInt64},
  };
  const auto it = std::ranges::find(others, code, &std::pair<std::int64_t, DType>::first);
  return it == std::end(others) ? std::nullopt : std::optional(it->second);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<Schema> read() {
    Schema s;
    std::size_t open = text_.find('(');
    std::size_t colons = text_.find("::");
    if (open == std::string_view::npos || colons == std::string_view::npos || colons > open)
      return error("NAMESPACE::NAME( expected");
    std::string_view full = text_.substr(colons + 2, open - colons - 2);
    std::size_t dot = full.find('.');
    s.base = fmt::format("{}.{}", text_.substr(0, colons), full.substr(0, dot));
    s.name = s.base + "." + std::string(dot == std::string_view::npos ? "default" : full.substr(dot + 1));
    at_ = open + 1;
    bool keyword_only = false;
    while (!eat(")")) {
      if (!s.args.empty() || keyword_only) {
        if (!eat(",")) return error("',' expected");
      }
      if (eat("*")) {
        keyword_only = true;
        if (eat(")")) break;
        if (!eat(",")) return error("',' expected");
      }
      SchemaArg a;
      TRY_DO(type(a));
      a.keyword_only = keyword_only;
      a.name = identifier();
      if (eat("=")) {
        a.has_default = true;
        TRY(a.default_value, default_value(a));
      }
      s.args.push_back(std::move(a));
    }
    if (!eat("->")) return error("'->' expected");
    if (eat("(")) {
      while (!eat(")")) {
        if (!s.returns.empty() && !eat(",")) return error("',' expected");
        TRY_DO(one_return(s));
      }
    } else {
      TRY_DO(one_return(s));
    }
    return s;
  }

 private:
  Diagnostic error(const char* what) const {
    return input_error("ops.schema", fmt::format("schema '{}': {} at column {}", text_, what, at_ + 1));
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool eat(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  std::string identifier() {
    skip();
    std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  Status one_return(Schema& s) {
    SchemaArg r;
    TRY_DO(type(r));
    r.name = identifier();
    s.returns.push_back(std::move(r));
    return {};
  }

  Status type(SchemaArg& a) {
    static const std::map<std::string, SchemaType, std::less<>> types = {
        {"Tensor", SchemaType::Tensor},    {"int", SchemaType::Int},
        {"SymInt", SchemaType::SymInt},    {"float", SchemaType::Float},
        {"bool", SchemaType::Bool},        {"SymBool", SchemaType::SymBool},
        {"Scalar", SchemaType::Scalar},    {"number", SchemaType::Scalar},
        {"complex", SchemaType::Scalar},   {"str", SchemaType::Str},
        {"ScalarType", SchemaType::Dtype}, {"Device", SchemaType::Device},
        {"Layout", SchemaType::Layout},    {"MemoryFormat", SchemaType::MemoryFormat},
        {"Dimname", SchemaType::Dimname},  {"Generator", SchemaType::Generator},
        {"Stream", SchemaType::Stream}};
    std::string word = identifier();
    if (word.empty()) return error("a type expected");
    auto it = types.find(word);
    a.type = it == types.end() ? SchemaType::Other : it->second;
    while (eat(".")) identifier();  // __torch__.torch.classes...
    for (;;) {
      if (at_ < text_.size() && text_[at_] == '(') {
        std::size_t end = text_.find(')', at_);
        if (end == std::string_view::npos) return error("')' expected");
        std::string_view alias = text_.substr(at_ + 1, end - at_ - 1);
        a.is_write = alias.find('!') != std::string_view::npos;
        a.alias_set = alias.substr(0, alias.find_first_of("!-> "));
        at_ = end + 1;
      } else if (at_ < text_.size() && text_[at_] == '[') {
        std::size_t end = text_.find(']', at_);
        if (end == std::string_view::npos) return error("']' expected");
        a.items_optional = a.is_optional;
        a.is_optional = false;
        a.is_list = true;
        std::from_chars(text_.data() + at_ + 1, text_.data() + end, a.list_size);
        at_ = end + 1;
      } else if (at_ < text_.size() && text_[at_] == '?') {
        a.is_optional = true;
        ++at_;
      } else {
        return {};
      }
    }
  }

  Result<Arg> default_value(const SchemaArg& a) {
    skip();
    if (eat("[")) {
      std::vector<Arg> items;
      while (!eat("]")) {
        if (!items.empty() && !eat(",")) return error("',' expected");
        TRY(Arg item, default_value(a));
        items.push_back(std::move(item));
      }
      return Arg::list(std::move(items));
    }
    if (eat("\"")) {
      std::string s;
      while (at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '\\') ++at_;
        if (at_ < text_.size()) s += text_[at_++];
      }
      if (!eat("\"")) return error("'\"' expected");
      return Arg(std::move(s));
    }
    std::size_t start = at_;
    while (at_ < text_.size() && std::string_view(",)] ").find(text_[at_]) == std::string_view::npos) ++at_;
    std::string_view word = text_.substr(start, at_ - start);
    if (word == "None") return Arg();
    if (word == "True" || word == "False") return Arg(word == "True");
    if (word == "contiguous_format") return Arg(MemoryFormat::Contiguous);
    if (word == "Mean") return Arg(1);
    bool whole = word.find_first_of(".einf") == std::string_view::npos;
    if (whole && (a.type == SchemaType::Dtype || a.type == SchemaType::MemoryFormat || a.type == SchemaType::Layout)) {
      int code = 0;
      std::from_chars(word.data(), word.data() + word.size(), code);
      if (a.type == SchemaType::Layout) return Arg(Layout::Strided);
      if (a.type == SchemaType::MemoryFormat) return Arg(static_cast<MemoryFormat>(code));
      if (auto t = dtype_from_c10(code)) return Arg(*t);
      return error("unknown dtype");
    }
    if (whole) {
      std::int64_t i = 0;
      if (std::from_chars(word.data(), word.data() + word.size(), i).ec != std::errc())
        return error("a number expected");
      if (a.type == SchemaType::Float) return Arg(static_cast<double>(i));
      return Arg(i);
    }
    double d = 0;
    if (word == "inf" || word == "-inf") return Arg(word[0] == '-' ? -HUGE_VAL : HUGE_VAL);
    if (std::from_chars(word.data(), word.data() + word.size(), d).ec != std::errc())
      return error("a default expected");
    return Arg(d);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The rows by overload name. A row is parsed when it is first asked for.
class Table {
 public:
  Table() {
    std::string_view text(partita_schemas_begin, static_cast<std::size_t>(partita_schemas_end - partita_schemas_begin));
    while (!text.empty()) {
      std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      std::size_t space = line.find(' ');
      std::string_view schema = line.substr(space + 1), full = schema.substr(0, schema.find('('));
      std::size_t colons = full.find("::"), dot = full.find('.', colons);
      std::string base = fmt::format("{}.{}", full.substr(0, colons),
                                     full.substr(colons + 2, dot == std::string_view::npos ? dot : dot - colons - 2));
      std::string name = base + "." + std::string(dot == std::string_view::npos ? "default" : full.substr(dot + 1));
      bases_[base].push_back(name);
      rows_[std::move(name)] = {line.substr(0, space), schema, nullptr};
    }
  }

  const Schema* find(std::string_view name) {
    std::lock_guard lock(mutex_);
    return find_locked(name);
  }

  const std::vector<const Schema*>& overloads(std::string_view base) {
    std::lock_guard lock(mutex_);
    auto names = bases_.find(std::string(base));
    if (names == bases_.end()) return none_;
    std::vector<const Schema*>& list = lists_[names->first];
    if (list.empty())
      for (const std::string& name : names->second) list.push_back(find_locked(name));
    return list;
  }

 private:
  struct Row {
    std::string_view flags, text;
    std::unique_ptr<Schema> parsed;
  };

  const Schema* find_locked(std::string_view name) {
    auto it = rows_.find(std::string(name));
    if (it == rows_.end()) return nullptr;
    Row& row = it->second;
    if (!row.parsed) {
      Result<Schema> s = parse_schema(row.text);
      CHECK(s, s.error().message);
      auto has = [&](char c) { return row.flags.find(c) != std::string_view::npos; };
      s->composite_implicit = has('c');
      s->is_view = has('v');
      s->is_mutable = has('m');
      s->nondeterministic_seeded = has('r');
      s->pointwise = has('p');
      s->core = has('k');
      row.parsed = std::make_unique<Schema>(*std::move(s));
    }
    return row.parsed.get();
  }

  std::mutex mutex_;
  std::unordered_map<std::string, Row> rows_;
  std::unordered_map<std::string, std::vector<std::string>> bases_;
  std::unordered_map<std::string, std::vector<const Schema*>> lists_;
  const std::vector<const Schema*> none_;
};

Table& table() {
  static Table t;
  return t;
}

}  // namespace

int Schema::index_of(std::string_view arg_name) const {
  for (std::size_t i = 0; i < args.size(); ++i)
    if (args[i].name == arg_name) return static_cast<int>(i);
  return -1;
}

Result<Schema> parse_schema(std::string_view text) {
  return Reader(text).read();
}

const UserOperator* meaning_of(const Op* op) {
  return op->meaning && op->meaning->schema.name == op->name ? op->meaning : nullptr;
}
const Schema* find_schema(const Op* op) {
  if (const UserOperator* meaning = meaning_of(op)) return &meaning->schema;
  return op->kind == OpKind::Torch ? find_schema(op->name) : nullptr;
}
const Schema* find_schema(std::string_view name) {
  return table().find(name);
}
const std::vector<const Schema*>& find_overloads(std::string_view base) {
  return table().overloads(base);
}

namespace {

/// What is wrong with a tensor, a number or a list of tensors that is given, in words; null when nothing is. Records
/// rely on this. Schemas of backward operators take tensors where PyTorch passes undefined ones, which graphs write as
/// None.
const char* refused(const Schema& schema, const SchemaArg& argument, const Arg& given) {
  const bool number = argument.type == SchemaType::Scalar;
  if (argument.type != SchemaType::Tensor && !number) return nullptr;
  if (!number && !argument.is_list && given.node() && given.node()->meta.tuple()) return "must be a tensor";
  if (argument.is_optional || schema.base.ends_with("backward")) return nullptr;
  if (given.is_none()) return "must not be None";
  if (const auto* list = given.get<ArgList>(); list && argument.is_list && !argument.items_optional)
    for (const Arg& item : list->items)
      if (item.is_none()) return "must not hold None";
  return nullptr;
}

/// What PyTorch takes for a literal of the argument's type: the number of a dtype, layout or memory format
/// (c10::ScalarType, c10::Layout, c10::MemoryFormat), and a device as text. Anything else stays as it is.
Result<Arg> as_literal(const SchemaArg& argument, const Arg& given) {
  if (argument.is_list) return given;
  if (const auto* text = given.get<std::string>(); text && argument.type == SchemaType::Device) {
    if (const auto device = Device::parse(*text)) return Arg(*device);
    return input_error("ops.arguments", fmt::format("'{}' is not a device", *text));
  }
  const auto* code = given.get<std::int64_t>();
  if (!code) return given;
  const auto numbered = [&](auto last) -> Result<Arg> {
    using Enum = decltype(last);
    if (*code >= 0 && *code <= static_cast<std::int64_t>(last)) return Arg(static_cast<Enum>(*code));
    return unsupported("ops.unsupported", fmt::format("{} {}, which Partita does not have", argument.name, *code));
  };
  switch (argument.type) {
    case SchemaType::Dtype:
      if (const auto dtype = dtype_from_c10(*code)) return Arg(*dtype);
      return unsupported("ops.unsupported", fmt::format("the dtype of number {}, which Partita does not have", *code));
    case SchemaType::Layout:
      return numbered(Layout::Mkldnn);
    case SchemaType::MemoryFormat:
      return numbered(MemoryFormat::ChannelsLast3d);
    default:
      return given;
  }
}

}  // namespace

Result<Args> bind_arguments(const Schema& schema, const Args& args, const Kwargs& kwargs) {
  auto error = [&](std::string what) { return input_error("ops.arguments", fmt::format("{}: {}", schema.name, what)); };
  Args bound(schema.args.size());
  std::vector<bool> given(schema.args.size());
  if (args.size() > schema.args.size())
    return error(fmt::format("{} positional arguments given, at most {} taken", args.size(), schema.args.size()));
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (schema.args[i].keyword_only) return error(fmt::format("argument '{}' is keyword-only", schema.args[i].name));
    bound[i] = args[i];
    given[i] = true;
  }
  for (const auto& [key, value] : kwargs) {
    int i = schema.index_of(key);
    if (i < 0) return error(fmt::format("no argument named '{}'", key));
    if (given[static_cast<std::size_t>(i)]) return error(fmt::format("argument '{}' given twice", key));
    bound[static_cast<std::size_t>(i)] = value;
    given[static_cast<std::size_t>(i)] = true;
  }
  for (std::size_t i = 0; i < schema.args.size(); ++i) {
    if (given[i]) {
      if (const char* wrong = refused(schema, schema.args[i], bound[i]))
        return error(fmt::format("argument '{}' {}", schema.args[i].name, wrong));
      TRY(bound[i], as_literal(schema.args[i], bound[i]));
      continue;
    }
    if (!schema.args[i].has_default && !schema.args[i].is_optional)
      return error(fmt::format("argument '{}' is missing", schema.args[i].name));
    bound[i] = schema.args[i].default_value;
  }
  return bound;
}

}  // namespace partita
