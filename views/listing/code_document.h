#pragma once
#include <QString>
#include <QStringView>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "views/picture/paint.h"

namespace partita::views {

/// The lines of a module, which can be folded into the first of them.
struct CodeSection {
  int begin = 0, end = 0;  ///< end: after the last
  QString label;
};

/// Text in lines, with the node that each line defines. Immutable; made on a worker thread.
class CodeDocument {
 public:
  CodeDocument() = default;
  /// `graph` may be null: plain text.
  CodeDocument(QString text, const Graph* graph);

  int line_count() const { return static_cast<int>(begins_.size()); }
  QStringView line(int index) const;
  /// The line as it is drawn: half the indentation, and of a source file's path only its name.
  QString shown_line(int index) const;
  int longest_line() const { return longest_; }  ///< of shown lines, in characters
  const QString& text() const { return text_; }
  int line_of(const QString& node) const;                                 ///< -1 when it has none
  QString node_at(int line) const;                                        ///< empty: none
  const std::vector<CodeSection>& sections() const { return sections_; }  ///< in order; they do not overlap
  /// Of the operator of the node that the line defines.
  std::optional<Family> family_at(int line) const;
  /// The first line at or after `from` that contains `needle`; goes on at the other end; -1 when there is none.
  int find(const QString& needle, int from, bool backwards = false) const;
  int count(const QString& needle) const;

 private:
  void find_sections(const Graph& graph);

  QString text_;
  std::vector<int> begins_;
  std::unordered_map<std::string, int> line_of_;
  std::vector<const std::string*> node_at_;  ///< keys of line_of_
  std::vector<std::optional<Family>> family_at_;
  std::vector<CodeSection> sections_;
  int longest_ = 0;
  bool is_graph_ = false;
};

}  // namespace partita::views
