#pragma once
// Reads Python expressions of FX text as arguments and calls. Internal to core/load.
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/lexer.h"
#include "core/ir/graph.h"

namespace partita::fx {

using python::Lexer, python::Token, python::TokenKind, python::unquote;

/// An expression: a plain argument, or a call that is no node yet because the statement names it.
struct Expression {
  Arg value;
  const Op* op = nullptr;  ///< null: value holds
  Args args;
  Kwargs kwargs;
  std::string target;  ///< of get_attr
};

/// Reads expressions with Python's operator precedence. Calls within arguments become nodes at once.
class ExpressionReader {
 public:
  ExpressionReader(Lexer& lexer, Graph& graph) : lexer_(lexer), graph_(graph) {}

  /// Python names in scope. The keys point into the text.
  std::unordered_map<std::string_view, Node*> names;
  /// The origin of the nodes that are made while reading.
  std::shared_ptr<const Origin> origin;
  Recompute recompute = Recompute::Unspecified;

  /// Reads an expression, as far as operators bind at least so tightly; and one argument of a call, which becomes a
  /// node if it is a call itself. Errors have code load.fx_text.
  Result<Expression> expression(int least_precedence = 0);
  Result<Arg> argument();
  /// Reads items up to the closing bracket and consumes it. `comments` (may be null) receives the comment after each
  /// item.
  Result<std::vector<Arg>> items(std::string_view close, std::vector<std::string>* comments = nullptr,
                                 bool* trailing_comma = nullptr);
  /// Makes the expression a node with the given name (a hint when empty).
  Node* materialise(Expression e, std::string_view name);

  Diagnostic expected(std::string_view what) const;                ///< points at the look-ahead token
  Diagnostic error_at(std::size_t at, std::string message) const;  ///< at that byte of the text

 private:
  Result<Expression> prefix();
  Result<Expression> postfix(Expression e);
  Result<Expression> name();
  Result<Expression> of_self();
  Result<Expression> getattr_call();
  Result<Expression> call(const Op* op, Args first);
  Result<Expression> dotted(std::string_view path);
  Result<Expression> literal_call(std::string_view path, bool& known);
  Result<Expression> number(bool negative);
  Result<Expression> bracketed();
  Result<Expression> dict();
  Result<std::string_view> identifier(std::string_view what);
  Arg as_argument(Expression e);
  bool is_named_argument() const { return lexer_.peek().kind == TokenKind::Name && lexer_.after_peek() == '='; }

  Lexer& lexer_;
  Graph& graph_;
  int depth_ = 0;
};

/// The _operator function of an in-place symbol, "iadd" for "+="; null for other symbols.
const Op* in_place_operator(std::string_view symbol);

}  // namespace partita::fx
