// Parses Python expressions in FX text by operator precedence: literals, constants of torch, lists, calls, subscripts,
// attributes. An outermost call is left for its statement to name; inner calls become nodes.
#include "core/load/fx_expression.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/base/config.h"
#include "core/base/memory.h"
#include "core/ir/python_operators.h"

namespace partita::fx {
namespace {

constexpr int max_depth = 200;

const Op* operator_function(std::string_view name) {
  return Op::get(OpKind::Function, fmt::format("_operator.{}", name));
}

/// The real part if the expression is the first number of (1+2j).
std::optional<double> real_literal(const Expression& e) {
  if (e.op) return std::nullopt;
  if (auto* i = e.value.get<std::int64_t>()) return static_cast<double>(*i);
  if (auto* d = e.value.get<double>()) return *d;
  return std::nullopt;
}

/// None for what is no number.
Arg negated(const Arg& number) {
  if (const auto* i = number.get<std::int64_t>(); i && *i != INT64_MIN) return -*i;
  if (const auto* d = number.get<double>()) return -*d;
  if (const auto* c = number.get<std::complex<double>>()) return -*c;
  return {};
}

std::optional<Arg> torch_constant(std::string_view name) {
  if (auto dtype = dtype_from_torch(name)) return Arg(*dtype);
  for (Layout l : {Layout::Strided, Layout::SparseCoo, Layout::SparseCsr, Layout::Mkldnn})
    if (torch_name(l) == name) return Arg(l);
  for (MemoryFormat f :
       {MemoryFormat::Contiguous, MemoryFormat::Preserve, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
    if (torch_name(f) == name) return Arg(f);
  return std::nullopt;
}

}  // namespace

const Op* in_place_operator(std::string_view symbol) {
  for (const PythonOperator& row : in_place_operators)
    if (row.symbol == symbol) return operator_function(row.function);
  return nullptr;
}

Diagnostic ExpressionReader::error_at(std::size_t at, std::string message) const {
  return input_error("load.fx_text", std::move(message), {.line = lexer_.line_of(at)});
}

Diagnostic ExpressionReader::expected(std::string_view what) const {
  const Token& t = lexer_.peek();
  std::string found = t.kind == TokenKind::End       ? "the end of the text"
                      : t.kind == TokenKind::Newline ? "the end of the line"
                                                     : fmt::format("'{}'", t.text.substr(0, 60));
  return error_at(t.at, fmt::format("{} expected, found {}", what, found));
}

Node* ExpressionReader::materialise(Expression e, std::string_view name) {
  if (!e.op) return e.value.node();
  std::string_view hint = name;
  if (hint.empty() && e.op == Op::get_attr()) hint = e.target;
  Node* node = graph_.create(e.op, std::move(e.args), std::move(e.kwargs), hint);
  node->target = std::move(e.target);
  node->origin = origin;
  node->recompute = recompute;
  return node;
}

Arg ExpressionReader::as_argument(Expression e) {
  if (!e.op) return std::move(e.value);
  return materialise(std::move(e), {});
}

Result<Arg> ExpressionReader::argument() {
  TRY(Expression e, expression());
  return as_argument(std::move(e));
}

Result<Expression> ExpressionReader::expression(int least) {
  if (++depth_ > max_depth) return error_at(lexer_.position(), "nested too deeply");
  if (graph_.size() > config().graph_limit) return error_at(lexer_.position(), too_many_nodes());
  TRY(Expression left, prefix());
  for (;;) {
    const PythonOperator* row = nullptr;
    if (lexer_.peek().kind == TokenKind::Operator)
      for (const PythonOperator& candidate : binary_operators)
        if (candidate.symbol == lexer_.peek().text && candidate.precedence >= least) row = &candidate;
    if (!row) break;
    lexer_.next();
    TRY(Expression right, expression(row->symbol == "**" ? row->precedence : row->precedence + 1));
    if (auto real = real_literal(left);
        real && !right.op && right.value.get<std::complex<double>>() && row->precedence == 6) {
      std::complex<double> imaginary = *right.value.get<std::complex<double>>();
      left.value = std::complex<double>(*real, row->symbol == "+" ? imaginary.imag() : -imaginary.imag());
      continue;
    }
    Args operands{as_argument(std::move(left)), as_argument(std::move(right))};
    left = Expression{{}, operator_function(row->function), std::move(operands)};
  }
  --depth_;
  return left;
}

Result<Expression> ExpressionReader::number(bool negative) {
  Token token = lexer_.next();
  std::string_view text = token.text;
  std::uint64_t magnitude = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), magnitude);
  if (end == text.data() + text.size()) {
    bool fits = bad == std::errc() && magnitude <= static_cast<std::uint64_t>(INT64_MAX) + (negative ? 1 : 0);
    if (!fits) return error_at(token.at, fmt::format("integer {} is out of range", text.substr(0, 60)));
    if (magnitude > static_cast<std::uint64_t>(INT64_MAX)) return Expression{INT64_MIN};
    const auto integer = static_cast<std::int64_t>(magnitude);
    return Expression{negative ? -integer : integer};
  }
  bool imaginary = text.ends_with("j");
  if (imaginary) text.remove_suffix(1);
  double real = 0;
  auto [real_end, real_bad] = std::from_chars(text.data(), text.data() + text.size(), real);
  if (real_end != text.data() + text.size() || real_bad != std::errc())
    return error_at(token.at, fmt::format("'{}' is not a number", token.text.substr(0, 60)));
  if (negative) real = -real;
  return imaginary ? Expression{std::complex<double>(0.0, real)} : Expression{real};
}

Result<Expression> ExpressionReader::prefix() {
  const Token& t = lexer_.peek();
  if (t.is("-") || t.is("~") || t.is("+")) {
    Token sign = lexer_.next();
    bool negative = sign.is("-");
    if (negative && lexer_.peek().kind == TokenKind::Number) {
      TRY(Expression whole, number(true));
      if (!lexer_.peek().is(".")) return whole;
      TRY(Expression of_positive, postfix(Expression{negated(whole.value)}));  // -0.5.__ceil__() is -(0.5.__ceil__())
      return Expression{{}, operator_function("neg"), {as_argument(std::move(of_positive))}};
    }
    if (negative && (lexer_.peek().is_name("inf") || lexer_.peek().is_name("nan")) &&
        !names.contains(lexer_.peek().text))
      return Expression{lexer_.next().text == "inf" ? -HUGE_VAL : -std::nan("")};
    TRY(Expression operand, expression(unary_precedence));
    // -(1) is a number as -1 is.
    if (negative && !operand.op)
      if (Arg value = negated(operand.value); !value.is_none()) return Expression{std::move(value)};
    return Expression{{},
                      operator_function(negative       ? "neg"
                                        : sign.is("~") ? "invert"
                                                       : "pos"),
                      {as_argument(std::move(operand))}};
  }
  Expression e;
  switch (t.kind) {
    case TokenKind::Number: {
      TRY(e, number(false));
      return postfix(std::move(e));
    }
    case TokenKind::String:
      e.value = unquote(lexer_.next().text);
      return postfix(std::move(e));
    case TokenKind::Name: {
      TRY(e, name());
      return postfix(std::move(e));
    }
    case TokenKind::Operator: {
      if (t.is("{")) return dict();
      if (!t.is("(") && !t.is("[")) return expected("an expression");
      TRY(e, bracketed());
      return postfix(std::move(e));
    }
    default:
      return expected("an expression");
  }
}

Result<Expression> ExpressionReader::bracketed() {
  if (lexer_.eat("[")) {
    TRY(std::vector<Arg> list, items("]"));
    return Expression{Arg::list(std::move(list))};
  }
  lexer_.next();
  // (x + y) is a grouping, not a tuple: its expression stays unnamed until the statement names it.
  if (lexer_.eat(")")) return Expression{Arg::tuple({})};
  TRY(Expression first, expression());
  if (lexer_.eat(")")) return first;
  if (!lexer_.eat(",")) return expected("',' or ')'");
  TRY(std::vector<Arg> rest, items(")"));
  rest.insert(rest.begin(), as_argument(std::move(first)));
  return Expression{Arg::tuple(std::move(rest))};
}

Result<std::vector<Arg>> ExpressionReader::items(std::string_view close, std::vector<std::string>* comments,
                                                 bool* trailing_comma) {
  std::vector<Arg> out;
  if (comments) lexer_.take_comment();
  while (!lexer_.eat(close)) {
    TRY(out.emplace_back(), argument());
    bool comma = lexer_.eat(",");
    if (trailing_comma) *trailing_comma = comma;
    if (comments) comments->emplace_back(lexer_.take_comment());
    if (!comma && !lexer_.peek().is(close)) return expected(fmt::format("',' or '{}'", close));
  }
  return out;
}

Result<Expression> ExpressionReader::dict() {
  lexer_.next();
  ArgDict out;
  while (!lexer_.eat("}")) {
    if (lexer_.peek().kind != TokenKind::String) return expected("a quoted key");
    std::string key = unquote(lexer_.next().text);
    if (!lexer_.eat(":")) return expected("':'");
    TRY(Arg value, argument());
    out.items.emplace_back(std::move(key), std::move(value));
    if (!lexer_.eat(",") && !lexer_.peek().is("}")) return expected("',' or '}'");
  }
  return Expression{std::move(out)};
}

Result<std::string_view> ExpressionReader::identifier(std::string_view what) {
  if (lexer_.peek().kind != TokenKind::Name) return expected(what);
  return lexer_.next().text;
}

Result<Expression> ExpressionReader::name() {
  std::string_view word = lexer_.next().text;
  if (auto it = names.find(word); it != names.end()) return Expression{it->second};
  if (word == "self") return of_self();
  if (word == "getattr" && lexer_.peek().is("(")) return getattr_call();
  if (!lexer_.peek().is(".") && !lexer_.peek().is("(")) {
    if (word == "None") return Expression();
    if (word == "True" || word == "False") return Expression{word == "True"};
    if (word == "inf") return Expression{HUGE_VAL};
    if (word == "nan") return Expression{std::nan("")};
    if (word == "Ellipsis" || word == "NotImplemented") return Expression{ArgName{std::string(word)}};
    return error_at(static_cast<std::size_t>(word.data() - lexer_.text().data()),
                    fmt::format("unknown name '{}'; define it before it is used", word.substr(0, 60)));
  }
  return dotted(word);
}

Result<Expression> ExpressionReader::dotted(std::string_view start) {
  std::string path(start);
  while (lexer_.eat(".")) {
    TRY(std::string_view part, identifier("a name behind '.'"));
    path += '.';
    path += part;
  }
  if (!lexer_.peek().is("(")) {
    std::string_view constant = path;
    if (constant.starts_with("torch."))
      if (auto arg = torch_constant(constant.substr(6))) return Expression{*std::move(arg)};
    return Expression{ArgName{path}};
  }
  bool known = false;
  TRY(Expression e, literal_call(path, known));
  if (known) return e;
  if (path.starts_with("torch.ops.")) return call(Op::torch(std::string_view(path).substr(10)), {});
  if (path.starts_with("operator.")) path.insert(0, "_");
  return call(Op::get(OpKind::Function, path), {});
}

/// Reads calls that only denote a constant: device(type='cpu'), torch.device('cuda:0'), slice(1, None, None),
/// torch.Size([2]) as an argument. As a statement, torch.Size([2]) is a call.
Result<Expression> ExpressionReader::literal_call(std::string_view path, bool& known) {
  bool device = path == "device" || path == "torch.device", slice = path == "slice",
       size = path == "torch.Size" && depth_ > 1;
  known = device || slice || size;
  if (!known) return Expression();
  std::size_t at = lexer_.position();
  TRY(Expression parts, call(Op::get_attr(), {}));
  if (device) {
    std::string text;
    std::int64_t index = -1;
    Kwargs given = std::move(parts.kwargs);
    if (!parts.args.empty()) given.emplace_back("type", parts.args[0]);
    if (parts.args.size() > 1) given.emplace_back("index", parts.args[1]);
    for (auto& [key, value] : given) {
      if (auto* s = value.get<std::string>(); s && key == "type") text = *s;
      if (auto* i = value.get<std::int64_t>(); i && key == "index") index = *i;
    }
    auto parsed = Device::parse(text);
    if (!parsed) return error_at(at, fmt::format("'{}' is not a device", text.substr(0, 60)));
    if (index >= 0) parsed->index = static_cast<int>(index);
    return Expression{*parsed};
  }
  if (slice) {
    if (parts.args.empty() || parts.args.size() > 3 || !parts.kwargs.empty())
      return error_at(at, "slice takes one to three arguments");
    if (parts.args.size() == 1) parts.args.insert(parts.args.begin(), Arg());
    while (parts.args.size() < 3) parts.args.emplace_back();
    return Expression{ArgSlice{std::move(parts.args)}};
  }
  auto* list = parts.args.size() == 1 ? parts.args[0].get<ArgList>() : nullptr;
  if (!list) return error_at(at, "torch.Size takes a list");
  return Expression{Arg::list(list->items)};
}

Result<Expression> ExpressionReader::call(const Op* op, Args first) {
  Expression e{{}, op, std::move(first)};
  if (!lexer_.eat("(")) return expected("'('");
  while (!lexer_.eat(")")) {
    if (is_named_argument()) {
      std::string key(lexer_.next().text);
      lexer_.next();
      TRY(Arg value, argument());
      e.kwargs.emplace_back(std::move(key), std::move(value));
    } else {
      if (!e.kwargs.empty()) return expected("'name = value'");
      TRY(e.args.emplace_back(), argument());
    }
    if (!lexer_.eat(",") && !lexer_.peek().is(")")) return expected("',' or ')'");
  }
  return e;
}

/// Reads what follows `self`: an attribute path, or a call of a sub module.
Result<Expression> ExpressionReader::of_self() {
  Expression e;
  for (;;) {
    // Modules in a list are named by numbers, and the lexer reads ".0" of ".0.weight" as a number.
    bool numbered = lexer_.peek().kind == TokenKind::Number && lexer_.peek().text.starts_with(".");
    if (!numbered && !lexer_.eat(".")) break;
    if (!numbered && lexer_.peek().kind != TokenKind::Name) return expected("an attribute name");
    std::string_view part = lexer_.next().text;
    if (numbered) part.remove_prefix(1);
    if (!e.target.empty()) e.target += '.';
    e.target += part;
  }
  if (e.target.empty()) return expected("'.' behind self");
  if (lexer_.peek().is("(")) return call(Op::get(OpKind::Function, "self." + e.target), {});
  e.op = Op::get_attr();
  return e;
}

/// getattr(self.layers, "0").weight is the attribute layers.0.weight. getattr of a value is a call.
Result<Expression> ExpressionReader::getattr_call() {
  std::size_t at = lexer_.position();
  lexer_.next();
  Expression object;
  if (lexer_.peek().is_name("self") && !names.contains("self")) {
    lexer_.next();
    object.op = Op::get_attr();
    if (lexer_.peek().is(".")) TRY_DO(assign(object, of_self()));
  } else {
    TRY(object, expression());
  }
  if (!lexer_.eat(",")) return expected("','");
  if (lexer_.peek().kind != TokenKind::String) return expected("a quoted attribute name");
  std::string attribute = unquote(lexer_.next().text);
  if (!lexer_.eat(")")) return expected("')'");
  if (object.op == Op::get_attr()) {
    if (!object.target.empty()) object.target += '.';
    object.target += attribute;
    if (lexer_.peek().is("(")) return call(Op::get(OpKind::Function, "self." + object.target), {});
    return object;
  }
  Arg value = as_argument(std::move(object));
  if (!value.node()) return error_at(at, "getattr of a value that is not a node");
  return Expression{{}, Op::get(OpKind::Function, "getattr"), {std::move(value), std::move(attribute)}};
}

/// Reads the subscripts, attributes and methods that follow a value.
Result<Expression> ExpressionReader::postfix(Expression e) {
  for (;;) {
    if (lexer_.peek().is("[")) {
      Arg object = as_argument(std::move(e));
      lexer_.next();
      TRY(Arg index, argument());
      if (lexer_.eat(",")) {
        TRY(std::vector<Arg> rest, items("]"));
        rest.insert(rest.begin(), std::move(index));
        index = Arg::tuple(std::move(rest));
      } else if (!lexer_.eat("]")) {
        return expected("']'");
      }
      e = Expression{{}, Op::getitem(), {std::move(object), std::move(index)}};
    } else if (lexer_.peek().is(".")) {
      bool attribute_of_self = e.op == Op::get_attr();
      lexer_.next();
      TRY(std::string_view member, identifier("an attribute or method name"));
      if (attribute_of_self && !lexer_.peek().is("(")) {
        e.target += '.';
        e.target += member;
        continue;
      }
      Arg object = as_argument(std::move(e));
      const bool method_of_number =
          lexer_.peek().is("(") && (object.get<double>() || object.get<std::int64_t>());  // of a size that is fixed
      if (!object.node() && !method_of_number)
        return expected(fmt::format("a node before '.{}'", member.substr(0, 60)));
      if (lexer_.peek().is("(")) {
        TRY(e, call(Op::get(OpKind::Method, member), {std::move(object)}));
      } else {
        e = Expression{{}, Op::get(OpKind::Function, "getattr"), {std::move(object), std::string(member)}};
      }
    } else {
      return e;
    }
  }
}

}  // namespace partita::fx
