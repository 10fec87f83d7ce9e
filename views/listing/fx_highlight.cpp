#include "views/listing/fx_highlight.h"

#include <array>

namespace partita::views {
namespace {

bool starts_name(QChar c) {
  return c.isLetter() || c == '_';
}
bool in_name(QChar c) {
  return c.isLetterOrNumber() || c == '_';
}

bool is_keyword(QStringView word) {
  static const std::array words = {u"class", u"def", u"return", u"self", u"None", u"True", u"False", u"inf", u"nan"};
  for (auto w : words)
    if (word == QStringView(w)) return true;
  return false;
}

// ";  x = y = None" at the end of a statement.
qsizetype deletion_begin(QStringView line) {
  if (!line.endsWith(u"= None")) return line.size();
  qsizetype at = line.lastIndexOf(u";  ");
  return at < 0 ? line.size() : at;
}

}  // namespace

std::vector<TokenSpan> highlight_fx(QStringView line) {
  std::vector<TokenSpan> spans;
  auto add = [&](qsizetype begin, qsizetype end, TokenKind token) {
    if (end > begin) spans.push_back({static_cast<int>(begin), static_cast<int>(end - begin), token});
  };
  qsizetype deletion = deletion_begin(line);
  qsizetype first = 0;
  while (first < line.size() && line[first].isSpace()) ++first;
  bool at_start = true;
  for (qsizetype i = first; i < deletion;) {
    QChar c = line[i];
    qsizetype begin = i;
    if (c == '#') {
      add(i, line.size(), TokenKind::Comment);
      return spans;
    }
    if (c == '"' || c == '\'') {
      for (++i; i < deletion && line[i] != c; ++i)
        if (line[i] == '\\') ++i;
      i = std::min(i + 1, deletion);
      add(begin, i, c == '"' ? TokenKind::Annotation : TokenKind::String);
    } else if (c.isDigit()) {
      while (i < deletion &&
             (in_name(line[i]) || line[i] == '.' || ((line[i] == '-' || line[i] == '+') && line[i - 1] == 'e')))
        ++i;
      add(begin, i, TokenKind::Number);
    } else if (starts_name(c)) {
      while (i < deletion && in_name(line[i])) ++i;
      QStringView word = line.sliced(begin, i - begin);
      if (is_keyword(word)) {
        add(begin, i, TokenKind::Keyword);
      } else if (at_start) {
        add(begin, i, TokenKind::Name);
      }
    } else {
      ++i;
    }
    at_start = false;
  }
  add(deletion, line.size(), TokenKind::Deletion);
  return spans;
}

}  // namespace partita::views
