// Parses the IR's expression syntax, in which formulas of derivatives, decompositions and rewrites are written.
#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/ops/formula_functions.h"
#include "core/ops/record.h"

namespace partita {
namespace {

using Names = std::vector<std::pair<std::string, Arg>>;

/// Builds calls while it parses, so nodes come in the order in which Python would evaluate the expression.
class Expression {
 public:
  Expression(Builder& build, std::string_view text, const Names& names) : build_(build), text_(text), names_(names) {}

  Arg read() {
    Arg a = sum();
    skip();
    if (at_ < text_.size()) syntax("unexpected text");
    return a;
  }

 private:
  [[noreturn]] void syntax(const char* what) {
    fail(fmt::format("formula '{}': {} at column {}", text_, what, at_ + 1));
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool eat(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  /// Takes one of these operators off the text, unless '=' or a second '*' follows it. Returns 0 when there is none.
  char one_of(std::string_view operators) {
    skip();
    if (at_ >= text_.size() || operators.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }

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
    if (i && j && op != '/') return op == '+' ? *i + *j : op == '-' ? *i - *j : *i * *j;
    double x = number(a), y = number(b);
    return op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y;
  }

  double number(const Arg& a) {
    if (auto* i = a.get<std::int64_t>()) return static_cast<double>(*i);
    if (auto* d = a.get<double>()) return *d;
    if (auto* b = a.get<bool>()) return *b;
    syntax("arithmetic on something that is not a number");
  }

  Arg sum() {
    Arg a = term();
    while (char op = one_of("+-")) a = binary(op, a, term());
    return a;
  }

  Arg term() {
    Arg a = unary();
    while (char op = one_of("*/")) a = binary(op, a, unary());
    return a;
  }

  Arg unary() {
    if (eat("-")) {
      Arg a = unary();
      if (auto* i = a.get<std::int64_t>()) return -*i;
      if (auto* d = a.get<double>()) return -*d;
      return build_.call("aten.neg.default", {a});
    }
    return postfix(primary());
  }

  Arg postfix(Arg a) {
    while (eat("[")) {
      Arg index = sum();
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

  Arg list(char close) {
    std::vector<Arg> items;
    while (!eat(std::string_view(&close, 1))) {
      if (!items.empty() && !eat(",")) syntax("',' expected");
      if (!items.empty() && eat(std::string_view(&close, 1))) break;
      items.push_back(sum());
    }
    return ArgList{std::move(items), close == ')'};
  }

  Arg primary() {
    skip();
    if (at_ >= text_.size()) syntax("an expression expected");
    char c = text_[at_];
    if (eat("[")) return list(']');
    if (eat("(")) {
      Arg a = sum();
      if (eat(")")) return a;
      std::vector<Arg> items{a};
      while (eat(",")) {
        if (text_.substr(at_).starts_with(")")) break;
        items.push_back(sum());
      }
      if (!eat(")")) syntax("')' expected");
      return Arg::tuple(std::move(items));
    }
    if (c == '\'') {
      std::size_t end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) syntax("unterminated string");
      std::string s(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      return s;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return literal();
    return name_or_call();
  }

  Arg literal() {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    std::int64_t i = 0;
    auto whole = std::from_chars(begin, end, i);
    if (whole.ec == std::errc() && (whole.ptr == end || (*whole.ptr != '.' && *whole.ptr != 'e'))) {
      at_ += static_cast<std::size_t>(whole.ptr - begin);
      return i;
    }
    double d = 0;
    auto real = std::from_chars(begin, end, d);
    if (real.ec != std::errc()) syntax("a number expected");
    at_ += static_cast<std::size_t>(real.ptr - begin);
    return d;
  }

  Arg name_or_call() {
    std::size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    std::string_view name = text_.substr(start, at_ - start);
    if (name.empty()) syntax("an expression expected");
    if (eat("(")) return call(name);
    for (const auto& [bound, value] : names_)
      if (bound == name) return value;
    if (name == "None") return Arg();
    if (name == "True" || name == "False") return Arg(name == "True");
    if (name == "inf") return Arg(HUGE_VAL);
    if (name == "nan") return Arg(std::nan(""));
    if (name == "contiguous_format") return MemoryFormat::Contiguous;
    if (name.starts_with("torch."))
      if (auto t = dtype_from_torch(name.substr(6))) return *t;
    fail(fmt::format("formula '{}': the name {} is not bound", text_, name));
  }

  Arg call(std::string_view name) {
    Args args;
    Kwargs kwargs;
    while (!eat(")")) {
      if ((!args.empty() || !kwargs.empty()) && !eat(",")) syntax("',' expected");
      skip();
      std::size_t p = at_;
      while (p < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[p])) || text_[p] == '_')) ++p;
      std::size_t q = text_.find_first_not_of(' ', p);
      if (p > at_ && q != std::string_view::npos && text_[q] == '=' && !text_.substr(q).starts_with("==")) {
        std::string key(text_.substr(at_, p - at_));
        at_ = q + 1;
        kwargs.emplace_back(std::move(key), sum());
      } else {
        args.push_back(sum());
      }
    }
    if (FormulaFunction f = ops().find_formula_function(name); f && kwargs.empty()) return f({build_, args});
    std::string op = name.find('.') == std::string_view::npos ? "aten." + std::string(name) : std::string(name);
    return build_.call(op, std::move(args), std::move(kwargs));
  }

  Builder& build_;
  std::string_view text_;
  const Names& names_;
  std::size_t at_ = 0;
};

}  // namespace

Arg Builder::expression(std::string_view text, const Names& names) {
  return Expression(*this, text, names).read();
}

}  // namespace partita
