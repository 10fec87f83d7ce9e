#pragma once
// Tokens of the Python subset in which FX text, symbolic expressions and formulas are written.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace partita::python {

enum class TokenKind : unsigned char { Name, Number, String, Operator, Newline, End, Bad };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;  ///< strings include their quotes
  std::size_t at = 0;

  bool is(std::string_view symbol) const { return kind == TokenKind::Operator && text == symbol; }
  bool is_name(std::string_view word) const { return kind == TokenKind::Name && text == word; }
};

/// A lexer with one token of look-ahead. Within brackets it skips newlines and comments, as Python does.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  /// A lexer over one expression, at its first token. Newlines count as blanks.
  static Lexer of_expression(std::string_view text);

  const Token& peek() const { return token_; }
  /// The first non-blank character after the look-ahead token: tells "name =" from other statements.
  char after_peek() const;
  Token next();
  bool eat(std::string_view symbol);
  /// Reads "aten.add" as one word. Empty if no name comes next.
  std::string_view take_dotted_name();

  /// Moves to `at`, which must be outside all brackets, and reads the token there.
  void seek(std::size_t at);
  std::size_t position() const { return token_.at; }
  std::string_view text() const { return text_; }
  /// The last comment that was passed since the previous call, without "# "; empty if there was none.
  std::string_view take_comment();
  int line_of(std::size_t at) const;  ///< counts lines, so use it for errors only

 private:
  void advance();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Token token_;
  std::string_view comment_;
};

/// The value of a number: an integer, or a float if it has a fraction or an exponent or does not fit. nullopt for other
/// tokens (2j).
std::optional<std::variant<std::int64_t, double>> number_of(const Token& token);
/// The value of a quoted string: escapes resolved.
std::string unquote(std::string_view quoted);

}  // namespace partita::python
