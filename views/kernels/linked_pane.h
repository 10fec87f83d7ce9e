#pragma once
#include <QAbstractScrollArea>
#include <QStringList>
#include <algorithm>
#include <vector>

#include "core/loops/loop.h"

namespace partita::views {

/// Code whose lines have the colours of the graph nodes that they compute. Only visible lines are drawn.
class LinkedPane : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit LinkedPane(const QString& title, QWidget* parent = nullptr);
  void set_code(const loops::LinkedText& code);
  void set_note(const QString& note);  ///< in place of code
  /// Marks the lines of a node, by its number in the step, and goes to the first when none is in view; -1: none.
  void mark(int node);
  int line_count() const { return static_cast<int>(lines_.size()); }
  const std::vector<int>& nodes_at(int line) const { return links_[static_cast<std::size_t>(line)]; }
  const QString& title() const { return title_; }
  int marked() const { return marked_; }

 Q_SIGNALS:
  void node_chosen(int node);   ///< a click or the keys on a line of it
  void node_pointed(int node);  ///< the pointer is over a line of it; -1: of none

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void changeEvent(QEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void leaveEvent(QEvent*) override;
  void keyPressEvent(QKeyEvent*) override;

 private:
  void update_bars();
  int line_at(double y) const;
  int node_at(int line) const;  ///< the first; -1: none
  void go_to(int line);
  bool has(int line, int node) const { return std::ranges::find(nodes_at(line), node) != nodes_at(line).end(); }

  QString title_, note_;
  QStringList lines_;
  std::vector<std::vector<int>> links_;
  int marked_ = -1, pointed_ = -1, current_ = -1;
  int longest_ = 0;
  double char_width_ = 8;
  int line_height_ = 16, ascent_ = 12;
};

/// The colour of a node within a step, the same in all panes.
QColor link_colour(int node);

}  // namespace partita::views
