#pragma once
#include <QAbstractScrollArea>
#include <memory>

#include "app/tasks/rank_ladder.h"

namespace partita::views {

/// Draws ranks side by side, with equal graphs as one lane, and their collectives as rungs between the lanes, from top
/// to bottom in the order in which they start. A rung that does not match is red; where a rank should start it and does
/// not, the rung ends in an open circle. Arrows walk, Enter goes to the node.
class LadderPlot : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit LadderPlot(QWidget* parent = nullptr);
  void set_ladder(std::shared_ptr<const RankLadder> ladder);
  const RankLadder* ladder() const { return ladder_.get(); }
  int row() const { return row_; }    ///< the chosen rung; -1: none
  int lane() const { return lane_; }  ///< of the chosen rung
  void choose(int row, int lane);     ///< and brings it into view
  void choose_next_wrong();           ///< the next rung that does not match, from the chosen one on and around

 Q_SIGNALS:
  void chosen();
  void activated();

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseDoubleClickEvent(QMouseEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  bool viewportEvent(QEvent*) override;  ///< what a rung is, as a tooltip

 private:
  int rows() const { return ladder_ ? static_cast<int>(ladder_->rows.size()) : 0; }
  int lanes() const { return ladder_ ? static_cast<int>(ladder_->lanes.size()) : 0; }
  double lane_width() const;
  QPointF place(int row, int lane) const;  ///< in the viewport
  int row_at(double y) const;              ///< -1: none
  int lane_at(double x) const;
  void update_scroll_ranges();
  void paint_lanes(QPainter& painter) const;
  void paint_row(QPainter& painter, int row) const;

  std::shared_ptr<const RankLadder> ladder_;
  int row_ = -1, lane_ = 0;
};

}  // namespace partita::views
