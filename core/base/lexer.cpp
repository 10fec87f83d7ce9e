#include "core/base/lexer.h"

#include <algorithm>
#include <charconv>

namespace partita::python {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
/// Bytes above 127 count as letters, because Python identifiers may hold any letter.
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Is this, behind the point of a number, the name of a method, as in 0.5.__round__(), and no exponent as in 1.e5?
bool begins_member(std::string_view rest) {
  if (rest.empty() || !is_word(rest[0]) || is_digit(rest[0])) return false;
  const auto second_is = [&](auto fits) { return rest.size() > 1 && fits(rest[1]); };
  if (rest[0] == 'e' || rest[0] == 'E') return !second_is([](char c) { return is_digit(c) || c == '+' || c == '-'; });
  return (rest[0] != 'j' && rest[0] != 'J') || second_is(is_word);
}

/// Longest first.
constexpr std::string_view operators[] = {"**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=",
                                          "->",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "@=", "+",  "-",
                                          "*",   "/",   "%",   "@",   "&",  "|",  "^",  "~",  "<",  ">",  "=",  "(",
                                          ")",   "[",   "]",   "{",   "}",  ",",  ":",  ".",  ";"};

}  // namespace

void Lexer::advance() {
  for (;;) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    if (at_ < text_.size() && text_[at_] == '#') {
      std::size_t end = std::min(text_.find('\n', at_), text_.size());
      comment_ = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end;
    }
    if (depth_ > 0 && at_ < text_.size() && text_[at_] == '\n') {
      ++at_;
      continue;
    }
    break;
  }
  std::size_t start = at_;
  auto make = [&](TokenKind kind, std::size_t length) {
    at_ = start + length;
    token_ = {kind, text_.substr(start, length), start};
  };
  if (at_ >= text_.size()) return make(TokenKind::End, 0);
  char c = text_[at_];
  if (c == '\n') return make(TokenKind::Newline, 1);
  std::size_t end = at_;
  if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
    while (end < text_.size() &&
           (is_word(text_[end]) || (text_[end] == '.' && !begins_member(text_.substr(end + 1))) ||
            ((text_[end] == '+' || text_[end] == '-') && (text_[end - 1] == 'e' || text_[end - 1] == 'E'))))
      ++end;
    return make(TokenKind::Number, end - start);
  }
  if (is_word(c)) {
    while (end < text_.size() && is_word(text_[end])) ++end;
    return make(TokenKind::Name, end - start);
  }
  if (c == '\'' || c == '"') {
    for (++end; end < text_.size() && text_[end] != c && text_[end] != '\n'; ++end)
      if (text_[end] == '\\') ++end;
    if (end >= text_.size() || text_[end] != c) return make(TokenKind::Bad, 1);
    return make(TokenKind::String, end + 1 - start);
  }
  for (std::string_view op : operators) {
    if (text_.substr(at_, op.size()) != op) continue;
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    return make(TokenKind::Operator, op.size());
  }
  make(TokenKind::Bad, 1);
}

char Lexer::after_peek() const {
  std::size_t at = at_;
  while (at < text_.size() && text_[at] == ' ') ++at;
  if (at >= text_.size()) return '\0';
  // "==" must not look like "=".
  return text_[at] == '=' && at + 1 < text_.size() && text_[at + 1] == '=' ? '\0' : text_[at];
}

Token Lexer::next() {
  Token token = token_;
  advance();
  return token;
}

bool Lexer::eat(std::string_view symbol) {
  if (!token_.is(symbol)) return false;
  advance();
  return true;
}

Lexer Lexer::of_expression(std::string_view text) {
  Lexer lexer(text);
  lexer.depth_ = 1;
  lexer.advance();
  return lexer;
}

std::string_view Lexer::take_dotted_name() {
  if (token_.kind != TokenKind::Name) return {};
  const std::size_t start = token_.at;
  std::size_t end = start + next().text.size();
  while (token_.is(".") && token_.at == end) {
    next();
    if (token_.kind != TokenKind::Name) break;
    end = token_.at + token_.text.size();
    next();
  }
  return text_.substr(start, end - start);
}

void Lexer::seek(std::size_t at) {
  at_ = at;
  depth_ = 0;
  comment_ = {};
  advance();
}

std::string_view Lexer::take_comment() {
  std::string_view comment = comment_;
  comment_ = {};
  while (!comment.empty() && comment.front() == ' ') comment.remove_prefix(1);
  while (!comment.empty() && (comment.back() == ' ' || comment.back() == '\r')) comment.remove_suffix(1);
  return comment;
}

int Lexer::line_of(std::size_t at) const {
  return 1 + static_cast<int>(std::count(
                 text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(at, text_.size())), '\n'));
}

std::optional<std::variant<std::int64_t, double>> number_of(const Token& token) {
  if (token.kind != TokenKind::Number) return std::nullopt;
  const char *begin = token.text.data(), *end = begin + token.text.size();
  std::int64_t whole = 0;
  if (const auto [at, bad] = std::from_chars(begin, end, whole); at == end && bad == std::errc()) return whole;
  double real = 0;
  if (const auto [at, bad] = std::from_chars(begin, end, real); at == end && bad == std::errc()) return real;
  return std::nullopt;
}

std::string unquote(std::string_view quoted) {
  std::string out;
  std::string_view body = quoted.substr(1, quoted.size() - 2);
  out.reserve(body.size());
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\' || i + 1 >= body.size()) {
      out += body[i];
      continue;
    }
    char c = body[++i];
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'x':
        if (i + 2 < body.size()) {
          auto hex = [](char h) {
            return is_digit(h) ? h - '0' : (h | 0x20) >= 'a' && (h | 0x20) <= 'f' ? (h | 0x20) - 'a' + 10 : -1;
          };
          int high = hex(body[i + 1]), low = hex(body[i + 2]);
          if (high >= 0 && low >= 0) {
            out += static_cast<char>(high * 16 + low);
            i += 2;
            break;
          }
        }
        [[fallthrough]];
      default:
        if (c != '\\' && c != '\'' && c != '"') out += '\\';
        out += c;
    }
  }
  return out;
}

}  // namespace partita::python
