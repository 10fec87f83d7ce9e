// Finds the graphs in a text: in a source file, between the words of a report, behind the prefixes of a log.
#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "core/base/text.h"
#include "core/load/fx_lines.h"
#include "core/load/fx_text.h"

namespace partita {
namespace {

constexpr std::string_view module_end = "(torch.nn.Module):", print_head = "graph():", method_head = "def forward(self";
/// Lines of other programs between two lines of a graph, before it counts as cut off.
constexpr int max_lines_between = 1000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Where in the line the graph's heading begins, behind whatever stands before it.
struct Head {
  FxForm form;
  std::size_t at;
  std::string name;
};

bool is_table_head(std::string_view content) {
  if (!content.starts_with("opcode ")) return false;
  for (const std::string_view column : {"opcode", "name", "target", "args", "kwargs"}) {
    if (!content.starts_with(column)) return false;
    content = trimmed(content.substr(column.size()));
  }
  return content.empty();
}

/// The heading that the whole line is.
std::optional<Head> plain_head(const fx::Line& line) {
  if (const std::string_view name = fx::class_name(line); !name.empty())
    return Head{FxForm::Module, line.indent, std::string(name)};
  if (line.content.starts_with(method_head)) return Head{FxForm::Method, line.indent, "forward"};
  if (line.content == print_head) return Head{FxForm::Print, line.indent, "graph"};
  if (is_table_head(line.content)) return Head{FxForm::Table, line.indent, "graph"};
  return std::nullopt;
}

/// The heading that the line ends with.
std::optional<Head> head_of(std::string_view text) {
  fx::Line line;
  if (text.empty() || !fx::read_line(text, 0, line)) return std::nullopt;
  if (auto head = plain_head(line)) return head;
  const std::string_view content = line.content;
  if (!content.ends_with(':') && !content.ends_with("kwargs")) return std::nullopt;
  const auto from = [&](std::size_t at) {
    const std::size_t begin = static_cast<std::size_t>(content.data() - text.data()) + at;
    const bool within_word = begin > 0 && (std::isalnum(static_cast<unsigned char>(text[begin - 1])) ||
                                           text[begin - 1] == '_' || text[begin - 1] == '.');
    fx::Line rest;
    if (within_word || !fx::read_line(text.substr(begin), 0, rest)) return std::optional<Head>();
    auto head = plain_head(rest);
    if (head) head->at = begin;
    return head;
  };
  if (content.ends_with(module_end))
    if (const std::size_t at = content.rfind("class "); at != content.npos) return from(at);
  if (content.ends_with(print_head)) return from(content.size() - print_head.size());
  if (const std::size_t at = content.find(method_head); at != content.npos) return from(at);
  if (const std::size_t at = content.rfind("opcode "); at != content.npos) return from(at);
  return std::nullopt;
}

/// Colours and other escapes of a terminal take no room: where the one at `at` ends, or `at`.
std::size_t behind_escape(std::string_view line, std::size_t at) {
  if (line[at] != '\x1b' || at + 1 >= line.size() || line[at + 1] != '[') return at;
  for (std::size_t i = at + 2; i < line.size(); ++i)
    if (line[i] >= 0x40 && line[i] <= 0x7e) return i + 1;
  return line.size();
}

std::string without_escapes(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    if (const std::size_t behind = behind_escape(line, i); behind > i)
      i = behind;
    else
      out += line[i++];
  }
  return out;
}

/// Digits that tell the time differ from line to line: those beside ':', '.' or ','. Those that tell a rank or a
/// process do not.
bool tells_time(std::string_view text, std::size_t begin, std::size_t end) {
  const auto beside = [](char c) { return c == ':' || c == '.' || c == ','; };
  return (begin > 0 && beside(text[begin - 1])) || (end < text.size() && beside(text[end]));
}

/// How much of the line is the prefix, whose digits of the time may differ; nullopt when it has another one.
std::optional<std::size_t> prefix_of(std::string_view line, std::string_view prefix) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < prefix.size();) {
    std::size_t digits = i;
    while (digits < prefix.size() && is_digit(prefix[digits])) ++digits;
    if (digits > i && tells_time(prefix, i, digits)) {
      if (at >= line.size() || !is_digit(line[at])) return std::nullopt;
      while (at < line.size() && is_digit(line[at])) ++at;
      i = digits;
      continue;
    }
    // A line of nothing but the prefix may have lost the blanks at its end.
    if (at == line.size()) return trimmed(prefix.substr(i)).empty() ? std::optional(at) : std::nullopt;
    if (line[at++] != prefix[i++]) return std::nullopt;
  }
  return at;
}

/// Reads the sections of one text.
class Finder {
 public:
  explicit Finder(std::string_view text) : text_(text), coloured_(text.find('\x1b') != std::string_view::npos) {}

  std::vector<FxSection> find() {
    fx::Line line;
    bool in_fence = false;
    for (std::size_t at = 0; fx::read_line(text_, at, line); ++number_) {
      at = line.end;
      if (line.content.empty() || taken_.contains(line.begin)) continue;
      std::string plain;
      const auto head = head_of(seen(line.begin, line.end, plain));
      // A method within a class is that class's, which has no base class here; in a report, code may be indented.
      const bool is_part = head && head->form == FxForm::Method && head->at > 0 && line.indent == head->at && !in_fence;
      if (head && !is_part) at = std::max(at, take(line, *head));
      in_fence = line.content.starts_with("```");
    }
    return std::move(out_);
  }

 private:
  /// What a terminal shows of the line. `storage` holds it when that is not what the file has.
  std::string_view seen(std::size_t begin, std::size_t end, std::string& storage) const {
    std::string_view raw = text_.substr(begin, end - begin);
    while (raw.ends_with('\n') || raw.ends_with('\r')) raw.remove_suffix(1);
    if (!coloured_ || raw.find('\x1b') == std::string_view::npos) return raw;
    storage = without_escapes(raw);
    return storage;
  }

  /// Does the line belong to the graph whose heading has that indentation? `done`: the graph ends with it.
  static bool belongs(FxForm form, std::size_t indent, std::string_view content, bool& done) {
    fx::Line line;
    if (content.empty() || !fx::read_line(content, 0, line)) line = {};
    switch (form) {
      case FxForm::Module:
      case FxForm::Method:
        return line.content.empty() || line.indent > indent || line.content.front() == '#';
      case FxForm::Print:
        done = line.content.starts_with("return");
        return done || line.content.starts_with('%');
      case FxForm::Table:
        done = line.content.starts_with("output ");
        return !line.content.empty();
    }
    return false;
  }

  /// Takes the graph under the heading. Where the search goes on.
  std::size_t take(const fx::Line& first, const Head& head) {
    std::string storage;
    const std::string shown(seen(first.begin, first.end, storage));
    std::string prefix = shown.substr(0, head.at);
    const bool bare = trimmed(prefix).empty();
    const std::size_t indent = bare ? head.at : 0;
    if (bare || !is_on_each_line(first.end, prefix, head.form)) prefix.clear();
    FxSection section{first.begin, first.end, number_, head.name, head.form, {}};
    bool clean = !bare || !storage.empty(), has_forward = head.form != FxForm::Module, done = false;
    std::vector<std::pair<std::size_t, std::size_t>> pieces;
    add_pieces(first.begin, first.end, bare ? 0 : head.at, pieces);
    fx::Line line;
    std::size_t blank = 0;  // pieces at the end that are blank lines
    int between = 0;
    for (std::size_t at = first.end; !done && fx::read_line(text_, at, line); at = line.end) {
      std::string plain;
      const std::string_view whole_line = seen(line.begin, line.end, plain);
      const auto skipped = prefix_of(whole_line, prefix);
      if (!skipped) {
        if (++between > max_lines_between || !look_ahead()) break;
        continue;
      }
      const std::string_view content = whole_line.substr(*skipped);
      if (!belongs(head.form, indent, content, done)) break;
      clean |= *skipped > 0 || between > 0 || !plain.empty();
      between = 0;
      has_forward |= content.find("def forward(") != std::string_view::npos;
      if (!prefix.empty()) taken_.insert(line.begin);
      const std::size_t before = pieces.size();
      add_pieces(line.begin, line.end, *skipped, pieces);
      blank = trimmed(content).empty() ? blank + pieces.size() - before : 0;
      section.end = line.end;
    }
    const std::size_t search = prefix.empty() ? section.end : first.end;
    if (!has_forward || (head.form != FxForm::Module && pieces.size() < 2)) return first.end;
    pieces.resize(pieces.size() - blank);
    if (clean) section.pieces = std::move(pieces);
    number_ += static_cast<int>(std::ranges::count(text_.substr(first.end, search - first.end), '\n'));
    out_.push_back(std::move(section));
    return search;
  }

  /// Does what stands before the heading stand before the graph's lines, too? Else these follow as they are. Lines of
  /// another process may come between.
  bool is_on_each_line(std::size_t at, std::string_view prefix, FxForm form) {
    fx::Line line;
    for (int i = 0; i < max_lines_between && fx::read_line(text_, at, line); ++i, at = line.end) {
      if (line.content.empty()) continue;
      if (!look_ahead()) return false;
      std::string plain;
      const std::string_view shown = seen(line.begin, line.end, plain);
      if (prefix_of(shown, prefix)) return true;
      if (bool done = false; belongs(form, 0, shown, done)) return false;
    }
    return false;
  }

  /// Takes one of the lines that may be read beyond a heading; false when there are no more.
  bool look_ahead() {
    if (look_aheads_ == 0) return false;
    --look_aheads_;
    return true;
  }

  /// The line without escapes and without the first `skip` characters that are seen of it.
  void add_pieces(std::size_t begin, std::size_t end, std::size_t skip,
                  std::vector<std::pair<std::size_t, std::size_t>>& out) const {
    if (!coloured_) return void(out.emplace_back(begin + skip, end - begin - skip));
    const std::string_view raw = text_.substr(begin, end - begin);
    std::size_t from = 0;
    const auto add = [&](std::size_t to) {
      if (to > from) out.emplace_back(begin + from, to - from);
    };
    for (std::size_t i = 0; i < raw.size();) {
      const std::size_t behind = behind_escape(raw, i);
      if (behind > i) {
        add(i);
        from = i = behind;
      } else {
        ++i;
        if (skip > 0) --skip, from = i;
      }
    }
    add(raw.size());
  }

  std::string_view text_;
  bool coloured_;
  int number_ = 1;
  std::size_t look_aheads_ = 10'000'000;  ///< lines that may still be read beyond a heading to find the graph's
  std::vector<FxSection> out_;
  std::unordered_set<std::size_t> taken_;  ///< beginnings of lines behind a prefix that are part of a graph
};

}  // namespace

std::string FxSection::text_of(std::string_view text) const {
  if (pieces.empty()) return std::string(text.substr(begin, end - begin));
  std::string out;
  for (const auto& [at, size] : pieces) out += text.substr(at, size);
  return out;
}

std::vector<FxSection> fx::find_all_graphs(std::string_view text) {
  return Finder(text).find();
}

std::vector<FxSection> fx::whole_graphs(std::string_view text, std::vector<FxSection> all) {
  if (all.size() < 2) return all;
  std::unordered_set<std::string> parts;
  for (const FxSection& section : all)
    for (const auto& [attribute, name] : made_modules(text, section))
      if (name != section.name) parts.emplace(name);
  std::erase_if(all, [&](const FxSection& s) { return s.form == FxForm::Module && parts.contains(s.name); });
  return all;
}

std::vector<FxSection> find_fx_graphs(std::string_view text) {
  return fx::whole_graphs(text, fx::find_all_graphs(text));
}

}  // namespace partita
