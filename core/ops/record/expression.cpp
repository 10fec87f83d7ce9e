// Parses the IR's expression syntax, in which formulas of derivatives, decompositions and rewrites are written.
#include <cmath>

#include <fmt/format.h>

#include "core/base/lexer.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

using python::Lexer, python::TokenKind;
using Names = std::vector<std::pair<std::string, Arg>>;

/// Builds calls while it parses, so nodes come in the order in which Python would evaluate the expression.
class Expression {
 public:
  Expression(Builder& build, std::string_view text, const Names& names)
      : build_(build), lexer_(Lexer::of_expression(text)), names_(names) {}

  Arg read() {
    Arg a = choice();
    if (lexer_.peek().kind != TokenKind::End) syntax("unexpected text");
    return a;
  }

 private:
  [[noreturn]] void syntax(const char* what) {
    fail(fmt::format("formula '{}': {} at column {}", lexer_.text(), what, lexer_.position() + 1));
  }

  bool eat(std::string_view symbol) { return lexer_.eat(symbol); }

  Arg binary(char op, Arg a, Arg b) {
    std::string_view name = op == '+' ? "add" : op == '-' ? "sub" : op == '*' ? "mul" : "div";
    bool tensors = (a.node() && a.node()->meta.tensor()) || (b.node() && b.node()->meta.tensor());
    if (!tensors) {
      if (!a.node() && !b.node()) return fold(op, a, b);
      return build_.call(op == '/' ? "_operator.truediv" : fmt::format("_operator.{}", name), {a, b});
    }
    // The number is on the left: 1 - x becomes rsub, 2 * x becomes x * 2, as Python's operators on tensors do.
    if (!(a.node() && a.node()->meta.tensor())) {
      if (op == '+' || op == '*')
        std::swap(a, b);
      else if (op == '-')
        return build_.call("aten.rsub.Scalar", {b, a});
      else
        return build_.call("aten.mul.Tensor", {build_.call("aten.reciprocal.default", {b}), a});
    }
    // The number is on the right: PyTorch's C++ code calls the Scalar overload.
    bool number = !(b.node() && b.node()->meta.tensor());
    return build_.call(fmt::format("aten.{}.{}", name, number ? "Scalar" : "Tensor"), {a, b});
  }

  Arg fold(char op, const Arg& a, const Arg& b) {
    auto *i = a.get<std::int64_t>(), *j = b.get<std::int64_t>();
    if (i && j && op != '/') {
      const SymExpr x = *i, y = *j;  // whose arithmetic fails beyond 64 bits
      return (op == '+' ? x + y : op == '-' ? x - y : x * y).as_int();
    }
    double x = number(a), y = number(b);
    return op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y;
  }

  /// The number of a node of a known value; anything else as it is.
  static Arg known(const Arg& a) {
    const SymExpr* e = a.node() ? a.node()->meta.sym() : nullptr;
    if (!e) return a;
    if (!e->is_int()) fail_unsupported("a choice by a number that is known only at run time: " + e->str());
    return e->as_int();
  }

  double number(const Arg& given) {
    const Arg a = known(given);
    if (auto* i = a.get<std::int64_t>()) return static_cast<double>(*i);
    if (auto* d = a.get<double>()) return *d;
    if (auto* b = a.get<bool>()) return *b;
    syntax("arithmetic on something that is not a number");
  }

  bool eat_word(std::string_view word) {
    if (!lexer_.peek().is_name(word)) return false;
    lexer_.next();
    return true;
  }

  /// Whether "if" comes before the end of the expression. Moves behind the text that it passes.
  static bool find_if(Lexer& lexer) {
    for (int depth = 0;; lexer.next()) {
      const python::Token& t = lexer.peek();
      if (depth == 0 && t.is_name("if")) return true;
      if (t.kind == TokenKind::End) return false;
      if (t.is("(") || t.is("[")) ++depth;
      if (depth == 0 && (t.is(",") || t.is(")") || t.is("]"))) return false;
      if (t.is(")") || t.is("]")) --depth;
    }
  }

  /// "a if condition else b", of which only one side makes nodes, or "not a", "a == b", or a sum.
  Arg choice() {
    const Lexer start = lexer_;
    if (!find_if(lexer_)) {
      lexer_ = start;
      if (lexer_.peek().is_name("not")) return condition();
      const Arg a = sum();
      return eat("==") ? Arg(known(a) == known(sum())) : a;
    }
    lexer_.next();
    const bool chosen = condition();
    if (!eat_word("else")) syntax("'else' expected");
    if (!chosen) return choice();
    Lexer end = lexer_;
    while (find_if(end)) end.next();
    lexer_ = start;
    Arg a = sum();
    if (!lexer_.peek().is_name("if")) syntax("'if' expected");
    lexer_ = end;
    return a;
  }

  // Conditions are over numbers, strings and None: they make no nodes.
  bool condition() {
    bool holds = conjunction();
    while (eat_word("or")) holds |= conjunction();
    return holds;
  }

  bool conjunction() {
    bool holds = comparison();
    while (eat_word("and")) holds &= comparison();
    return holds;
  }

  bool comparison() {
    if (eat_word("not")) return !comparison();
    const Arg a = sum();
    if (eat_word("is")) {
      const bool negated = eat_word("not");
      if (!eat_word("None")) syntax("'None' expected");
      return a.is_none() != negated;
    }
    if (eat("==")) return known(a) == known(sum());
    if (eat("<")) return number(a) < number(sum());
    if (const bool* holds = a.get<bool>()) return *holds;
    if (a.node() && a.node()->meta.sym()) return number(a) != 0;
    syntax("a condition expected");
  }

  Arg sum() {
    Arg a = term();
    while (lexer_.peek().is("+") || lexer_.peek().is("-")) {
      const char op = lexer_.next().text[0];
      a = binary(op, a, term());
    }
    return a;
  }

  Arg term() {
    Arg a = unary();
    while (lexer_.peek().is("*") || lexer_.peek().is("/")) {
      const char op = lexer_.next().text[0];
      a = binary(op, a, unary());
    }
    return a;
  }

  Arg unary() {
    if (eat("-")) {
      Arg a = unary();
      if (auto* i = a.get<std::int64_t>()) return (-SymExpr(*i)).as_int();
      if (auto* d = a.get<double>()) return -*d;
      const bool number = a.node() && a.node()->meta.sym();
      return build_.call(number ? "_operator.neg" : "aten.neg.default", {a});
    }
    return postfix(primary());
  }

  Arg postfix(Arg a) {
    while (eat("[")) {
      Arg index = choice();
      if (!eat("]")) syntax("']' expected");
      auto* i = index.get<std::int64_t>();
      if (!i) syntax("a constant index expected");
      if (auto* list = a.get<ArgList>()) {
        if (*i < 0 || *i >= static_cast<std::int64_t>(list->items.size())) syntax("index out of range");
        a = Arg(list->items[static_cast<std::size_t>(*i)]);
      } else if (a.node()) {
        a = build_.getitem(a.node(), *i);
      } else {
        syntax("only tuples and lists are indexed");
      }
    }
    return a;
  }

  Arg list() {
    std::vector<Arg> items;
    while (!eat("]")) {
      if (!items.empty() && !eat(",")) syntax("',' expected");
      if (!items.empty() && eat("]")) break;
      items.push_back(choice());
    }
    return Arg::list(std::move(items));
  }

  Arg primary() {
    if (eat("[")) return list();
    if (eat("(")) {
      Arg a = choice();
      if (eat(")")) return a;
      std::vector<Arg> items{a};
      while (eat(",") && !lexer_.peek().is(")")) items.push_back(choice());
      if (!eat(")")) syntax("')' expected");
      return Arg::tuple(std::move(items));
    }
    if (lexer_.peek().kind == TokenKind::String) return python::unquote(lexer_.next().text);
    if (lexer_.peek().kind == TokenKind::Number) {
      const auto number = python::number_of(lexer_.peek());
      if (!number) syntax("a number expected");
      lexer_.next();
      return std::visit([](auto value) { return Arg(value); }, *number);
    }
    return name_or_call();
  }

  Arg name_or_call() {
    const std::string_view name = lexer_.take_dotted_name();
    if (name.empty()) syntax("an expression expected");
    if (eat("(")) return call(name);
    for (const auto& [bound, value] : names_)
      if (bound == name) return value;
    if (name == "None") return Arg();
    if (name == "True" || name == "False") return Arg(name == "True");
    if (name == "inf") return Arg(HUGE_VAL);
    if (name == "nan") return Arg(std::nan(""));
    if (name == "imaginary_unit") return Arg(std::complex<double>(0, 1));
    if (name == "contiguous_format") return MemoryFormat::Contiguous;
    if (name.starts_with("torch."))
      if (auto t = dtype_from_torch(name.substr(6))) return *t;
    fail(fmt::format("formula '{}': the name {} is not bound", lexer_.text(), name));
  }

  Arg call(std::string_view name) {
    Args args;
    Kwargs kwargs;
    while (!eat(")")) {
      if ((!args.empty() || !kwargs.empty()) && !eat(",")) syntax("',' expected");
      if (lexer_.peek().kind == TokenKind::Name && lexer_.after_peek() == '=') {
        std::string key(lexer_.next().text);
        eat("=");
        kwargs.emplace_back(std::move(key), choice());
      } else {
        args.push_back(choice());
      }
    }
    if (FormulaFunction f = ops().find_formula_function(name); f && kwargs.empty()) return f({build_, args});
    std::string op = name.find('.') == std::string_view::npos ? "aten." + std::string(name) : std::string(name);
    return build_.call(op, std::move(args), std::move(kwargs));
  }

  Builder& build_;
  Lexer lexer_;
  const Names& names_;
};

}  // namespace

Arg Builder::expression(std::string_view text, const Names& names) {
  return Expression(*this, text, names).read();
}

}  // namespace partita
