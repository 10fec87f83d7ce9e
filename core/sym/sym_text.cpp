// Text of symbolic expressions. The printer writes sympy's form; the reader also accepts srepr.
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/base/lexer.h"
#include "core/base/python_text.h"
#include "core/base/raise.h"
#include "core/sym/sym_node.h"
#include "core/sym/term_budget.h"

namespace partita {
namespace {

using python::Lexer, python::TokenKind;

int precedence(SymKind kind) {
  switch (kind) {
    case SymKind::Or:
      return 1;
    case SymKind::And:
      return 2;
    case SymKind::Not:
      return 3;
    case SymKind::Eq:
    case SymKind::Ne:
    case SymKind::Lt:
    case SymKind::Le:
      return 4;
    case SymKind::Add:
      return 5;
    case SymKind::Mul:
      return 6;
    case SymKind::Pow:
      return 8;
    default:
      return 9;
  }
}

/// Prints 15 significant digits and an exponent without leading zeros, as sympy does: 0.6, 1.0, 1.19209289550781e-7.
std::string print(double v) {
  if (!std::isfinite(v)) return std::isnan(v) ? "nan" : v > 0 ? "oo" : "-oo";
  std::string digits = fmt::format("{:.15g}", v);
  const std::size_t e = digits.find('e');
  std::string mantissa = digits.substr(0, e);
  if (mantissa.find('.') == std::string::npos) mantissa += ".0";
  if (e == std::string::npos) return mantissa;
  const std::size_t first = digits.find_first_not_of('0', e + 2);
  return mantissa + digits.substr(e, 2) + digits.substr(first);
}

std::string print(SymExpr e, int outer);

/// What PyTorch prints of sym_ite.
std::string piecewise(SymExpr e) {
  std::string out = "Piecewise(";
  for (; e.kind() == SymKind::Call && e.name() == "Where" && e.args().size() == 3; e = e.args()[2])
    out += "(" + print(e.args()[1], 0) + ", " + print(e.args()[0], 0) + "), ";
  return out + "(" + print(e, 0) + ", True))";
}

std::string sum(SymExpr e, int level) {
  std::string out;
  for (SymExpr a : sym_print_order(e)) {
    const std::string term = print(a, level);
    if (out.empty())
      out = term;
    else if (term[0] == '-')
      out += " - " + term.substr(1);
    else
      out += " + " + term;
  }
  return out;
}

std::string product(SymExpr e, int level) {
  std::string out = e.args()[0].is(-1) ? "-" : "";
  for (SymExpr a : sym_print_order(e)) {
    if (a.is(-1)) continue;
    if (!out.empty() && out != "-") out += "*";
    const bool number = a.is_int() || a.kind() == SymKind::Float;
    out += print(a, number ? 0 : level + 1);
  }
  return out;
}

std::string print(SymExpr e, int outer) {
  auto join = [&](const char* separator, int level) {
    std::string out;
    for (SymExpr a : sym_print_order(e)) out += (out.empty() ? "" : separator) + print(a, level);
    return out;
  };
  int level = precedence(e.kind());
  std::string out;
  switch (e.kind()) {
    case SymKind::Int:
      out = fmt::format("{}", e.as_int());
      if (e.as_int() < 0) level = 6;
      break;
    case SymKind::Float:
      out = print(e.as_float());
      if (e.as_float() < 0) level = 6;
      break;
    case SymKind::Symbol:
      return e.name();
    case SymKind::Computed:
      return fmt::format("scalar({})", e.computed_id());
    case SymKind::Add:
      out = sum(e, level);
      break;
    case SymKind::Mul:
      out = product(e, level);
      break;
    case SymKind::Pow:
      if (!e.args()[1].is_int()) return (e.is_float() ? "FloatPow(" : "PowByNatural(") + join(", ", 0) + ")";
      out = print(e.args()[0], level + 1) + "**" + print(e.args()[1], level + 1);
      break;
    case SymKind::FloorDiv:  // PyTorch gives FloorDiv a precedence below Add
      out = "(" + print(e.args()[0], 7) + "//" + print(e.args()[1], 7) + ")";
      level = precedence(SymKind::Le);
      break;
    case SymKind::Mod:
      return "Mod(" + join(", ", 0) + ")";
    case SymKind::TrueDiv:
      return (e.args()[0].is_float() || e.args()[1].is_float() ? "FloatTrueDiv(" : "IntTrueDiv(") + join(", ", 0) + ")";
    case SymKind::Min:
      return "Min(" + join(", ", 0) + ")";
    case SymKind::Max:
      return "Max(" + join(", ", 0) + ")";
    case SymKind::Eq:
      return "Eq(" + join(", ", 0) + ")";
    case SymKind::Ne:
      return "Ne(" + join(", ", 0) + ")";
    case SymKind::Lt:
      out = join(" < ", level + 1);
      break;
    case SymKind::Le:
      out = join(" <= ", level + 1);
      break;
    case SymKind::And:
      out = join(" & ", 5);
      break;
    case SymKind::Or:
      out = join(" | ", 5);
      break;
    case SymKind::Not:
      out = "~" + print(e.args()[0], 9);
      break;
    case SymKind::Call:
      if (e.name() == "Where" && e.args().size() == 3) return piecewise(e);
      return e.name() + "(" + join(", ", 0) + ")";
  }
  return level < outer ? "(" + out + ")" : out;
}

/// Precedence-climbing reader of Python expressions over symbols and calls.
class Reader {
 public:
  explicit Reader(std::string_view text) : lexer_(Lexer::of_expression(text)) {}

  Result<SymExpr> read() {
    TRY(SymExpr e, expression(0));
    if (lexer_.peek().kind != TokenKind::End) return error("unexpected text");
    return e;
  }

 private:
  static constexpr int max_depth = 200;

  Diagnostic error(const char* what) const {
    return input_error("sym.syntax", fmt::format("symbolic expression '{}': {} at column {}",
                                                 lexer_.text().substr(0, 200), what, lexer_.position() + 1));
  }

  struct Binary {
    std::string_view token;
    int level;
    SymExpr (*make)(SymExpr, SymExpr);  ///< null for those that make chains
  };
  /// The binary operator that comes next if it binds at least as tightly as `least`; it is taken. Null if there is
  /// none.
  const Binary* binary(int least) {
    static constexpr Binary rows[] = {{"**", 8, sym_pow}, {"//", 6, sym_floordiv},
                                      {"<=", 3, sym_le},  {">=", 3, [](SymExpr a, SymExpr b) { return sym_le(b, a); }},
                                      {"==", 3, sym_eq},  {"!=", 3, sym_ne},
                                      {"<", 3, sym_lt},   {">", 3, [](SymExpr a, SymExpr b) { return sym_lt(b, a); }},
                                      {"|", 1, sym_or},   {"&", 2, sym_and},
                                      {"+", 4, nullptr},  {"-", 4, nullptr},
                                      {"*", 6, nullptr},  {"/", 6, sym_truediv},
                                      {"%", 6, sym_mod}};
    for (const Binary& row : rows)
      if (row.level >= least && lexer_.eat(row.token)) return &row;
    return nullptr;
  }

  Result<SymExpr> expression(int least) {
    if (++depth_ > max_depth) return error("nested too deeply");
    TRY(SymExpr left, prefix());
    // Sums and products are made at once, because a node for each beginning of a chain would take quadratic time.
    std::vector<SymExpr> terms, factors;
    const auto finish = [&] {
      if (!factors.empty()) left = product(std::exchange(factors, {}));
      if (!terms.empty()) left = sym_sum(std::exchange(terms, {}));
    };
    while (const Binary* found = binary(least)) {
      const std::string_view op = found->token;
      TRY(SymExpr right, expression(op == "**" ? found->level : found->level + 1));
      auto& chain = op == "*" ? factors : terms;
      if (!found->make) {
        if (chain.empty()) {
          finish();
          chain.push_back(left);
        }
        chain.push_back(op == "-" ? -right : right);
        continue;
      }
      finish();
      if ((op == "//" || op == "%" || op == "/") && right.is(0)) return error("division by zero");
      left = found->make(left, right);
    }
    finish();
    --depth_;
    return left;
  }

  Result<SymExpr> prefix() {
    if (lexer_.eat("-")) {
      TRY(SymExpr e, expression(7));
      return -e;
    }
    if (lexer_.eat("~")) {
      TRY(SymExpr e, expression(7));
      return sym_not(e);
    }
    if (lexer_.eat("(")) {
      TRY(SymExpr e, expression(0));
      if (!lexer_.eat(")")) return error("')' expected");
      return e;
    }
    if (lexer_.peek().kind == TokenKind::Number) {
      const auto number = python::number_of(lexer_.next());
      if (!number) return error("a number that can be read expected");
      if (const auto* whole = std::get_if<std::int64_t>(&*number)) return SymExpr(*whole);
      return SymExpr::real(std::get<double>(*number));
    }
    const std::string_view name = lexer_.take_dotted_name();
    if (name.empty()) return error("a number, symbol or '(' expected");
    if (lexer_.eat("(")) return call(name);
    if (name == "True" || name == "true") return SymExpr(1);
    if (name == "False" || name == "false") return SymExpr(0);
    if (name == "oo" || name == "int_oo" || name == "inf") return SymExpr::real(HUGE_VAL);
    return SymExpr::symbol(name);
  }

  /// Skips a keyword argument of srepr (positive=True, precision=53); we keep nothing of it.
  bool keyword_argument() {
    if (lexer_.peek().kind != TokenKind::Name || lexer_.after_peek() != '=') return false;
    while (lexer_.peek().kind != TokenKind::End && !lexer_.peek().is(",") && !lexer_.peek().is(")")) lexer_.next();
    return true;
  }

  /// (value, condition) or ExprCondPair(value, condition) for each case, of which the first that holds counts.
  Result<SymExpr> piecewise() {
    std::vector<std::pair<SymExpr, SymExpr>> cases;
    do {
      if (lexer_.peek().is_name("ExprCondPair")) lexer_.next();
      if (!lexer_.eat("(")) return error("'(' expected");
      TRY(SymExpr value, expression(0));
      if (!lexer_.eat(",")) return error("',' expected");
      TRY(SymExpr condition, expression(0));
      if (!lexer_.eat(")")) return error("')' expected");
      cases.emplace_back(value, condition);
    } while (lexer_.eat(","));
    if (!lexer_.eat(")")) return error("')' expected");
    if (cases.back().second != SymExpr(1)) return error("a last case that always holds expected");
    SymExpr out = cases.back().first;
    for (std::size_t i = cases.size() - 1; i-- > 0;) out = sym_call("Where", {cases[i].second, cases[i].first, out});
    return out;
  }

  Result<SymExpr> call(std::string_view name) {
    if (name == "Piecewise" || name.ends_with(".Piecewise")) return piecewise();
    if (name == "Symbol" || name == "Float") {
      if (lexer_.peek().kind != TokenKind::String) return error("a quoted string expected");
      const std::string body = python::unquote(lexer_.next().text);
      while (lexer_.eat(","))
        if (!keyword_argument()) return error("keyword argument expected");
      if (!lexer_.eat(")")) return error("')' expected");
      if (name == "Symbol") {
        if (!is_identifier(body)) return error("the name of a symbol is not an identifier");
        return SymExpr::symbol(body);
      }
      return Reader(body).read();
    }
    std::vector<SymExpr> a;
    while (!lexer_.eat(")")) {
      if (!a.empty() && !lexer_.eat(",")) return error("',' expected");
      if (keyword_argument()) continue;
      TRY(a.emplace_back(), expression(0));
    }
    if (std::size_t dot = name.rfind('.'); dot != std::string_view::npos) name = name.substr(dot + 1);
    if (a.empty()) return error("a call without arguments");
    auto fold = [&](auto f) {
      SymExpr out = a[0];
      for (std::size_t i = 1; i < a.size(); ++i) out = f(out, a[i]);
      return out;
    };
    if (name == "Integer" || name == "Sym") return a[0];
    if (name == "Add" || name == "sym_sum") return sym_sum(a);
    if (name == "Mul") return product(a);
    if (name == "Min" || name == "sym_min") return fold(sym_min);
    if (name == "Max" || name == "sym_max") return fold(sym_max);
    if (name == "And") return fold(sym_and);
    if (name == "Or") return fold(sym_or);
    if (name == "Not" && a.size() == 1) return sym_not(a[0]);
    if (a.size() == 2) {
      if (name == "Pow" || name == "PowByNatural" || name == "FloatPow") return sym_pow(a[0], a[1]);
      if (name == "Eq" || name == "Equality") return sym_eq(a[0], a[1]);
      if (name == "Ne" || name == "Unequality") return sym_ne(a[0], a[1]);
      if (name == "Lt" || name == "StrictLessThan") return sym_lt(a[0], a[1]);
      if (name == "Le" || name == "LessThan") return sym_le(a[0], a[1]);
      if (name == "Gt" || name == "StrictGreaterThan") return sym_lt(a[1], a[0]);
      if (name == "Ge" || name == "GreaterThan") return sym_le(a[1], a[0]);
      if (name == "IntTrueDiv" || name == "FloatTrueDiv") return sym_truediv(a[0], a[1]);
      if (name == "Rational" && !a[1].is(0)) return sym_truediv(a[0], a[1]);
      if ((name == "FloorDiv" || name == "CleanDiv") && !a[1].is(0)) return sym_floordiv(a[0], a[1]);
      if (name == "CeilDiv" && !a[1].is(0)) return sym_floordiv(a[0] + a[1] - 1, a[1]);
      if ((name == "Mod" || name == "PythonMod") && !a[1].is(0)) return sym_mod(a[0], a[1]);
    }
    return sym_call(name, std::move(a));
  }

  Lexer lexer_;
  int depth_ = 0;
};

}  // namespace

std::string SymExpr::str() const {
  return print(*this, 0);
}

Result<SymExpr> SymExpr::parse(std::string_view text) {
  const TermBudget budget(text.size());
  return catch_raised<SymExpr>([&] { return Reader(text).read(); });
}

}  // namespace partita
