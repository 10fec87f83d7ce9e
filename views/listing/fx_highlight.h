#pragma once
#include <QStringView>
#include <vector>

namespace partita::views {

enum class TokenKind : unsigned char { Plain, Keyword, String, Number, Comment, Annotation, Name, Deletion };

struct TokenSpan {
  int begin = 0, length = 0;
  TokenKind token = TokenKind::Plain;
};

/// The tokens of one line of FX text, a subset of Python in which no token spans lines. Spans are in order and do not
/// overlap; text between them is plain.
std::vector<TokenSpan> highlight_fx(QStringView line);

}  // namespace partita::views
