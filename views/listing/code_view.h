#pragma once
#include <QAbstractScrollArea>
#include <QScrollBar>
#include <memory>
#include <set>

#include "views/listing/code_document.h"
#include "views/listing/fx_highlight.h"
#include "views/look/theme.h"

namespace partita::views {

/// Shows FX text. Only visible lines are laid out, so that a million lines cost no more than a page.
class CodeView : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit CodeView(QWidget* parent = nullptr);

  void set_document(std::shared_ptr<const CodeDocument> document);
  const CodeDocument* document() const { return document_.get(); }
  void select(const QString& node);                    ///< scrolls there when it is out of view
  void set_line_changes(std::vector<Change> changes);  ///< by line; colours the margin
  void set_search(const QString& text);
  /// Goes to the next hit; false when there is none.
  bool find_next(bool backwards = false);
  int current_line() const { return current_; }
  /// of the chosen node, or of the module that it is folded in; -1: none
  int chosen_line() const { return chosen_ >= 0 && is_hidden(chosen_) ? section_at(chosen_)->begin : chosen_; }
  int first_visible_line() const { return line_of_row(verticalScrollBar()->value()); }
  /// Folds the lines of the module that this line is in, or unfolds them.
  void fold_at(int line);
  void fold_all(bool folded);
  bool is_hidden(int line) const;  ///< in a folded module, but not its first line

 Q_SIGNALS:
  void node_chosen(QString node);

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  void changeEvent(QEvent*) override;
  bool viewportEvent(QEvent*) override;  ///< the whole line as a tooltip where it is cut

 private:
  void update_bars();
  void arrange_rows();
  const CodeSection* section_at(int line) const;
  int row_count() const;
  int line_of_row(int row) const;
  int row_of_line(int line) const;
  void reveal(int line);
  int line_at(int y) const;
  double margin_width() const;
  QString selected_text() const;
  void set_current(int line, bool tell);

  std::shared_ptr<const CodeDocument> document_;
  std::vector<Change> changes_;
  QString search_;
  double char_width_ = 8;
  int line_height_ = 18, ascent_ = 13;
  std::set<int> folded_;   ///< first lines of folded modules
  std::vector<int> rows_;  ///< the lines that are shown; empty: all
  int chosen_ = -1;        ///< the line of the chosen node
  int current_ = -1;
  int anchor_ = -1;  ///< other end of the selected lines; -1: only the current one
};

}  // namespace partita::views
