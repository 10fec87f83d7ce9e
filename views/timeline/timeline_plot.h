#pragma once
#include <QAbstractScrollArea>
#include <memory>

#include "core/diff/timeline.h"

namespace partita::views {

/// "inductor_compile (0/0): 1.23 s, 0.40 s of its own".
QString span_text(const TimelineSpan& span);

/// Draws a time line: a box for each step, below the one that it is part of, coloured by how much time all
/// occurrences of the step took by themselves. The wheel zooms at the pointer, dragging pans; arrows walk from step to
/// step.
class TimelinePlot : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit TimelinePlot(QWidget* parent = nullptr);
  void set_timeline(std::shared_ptr<const Timeline> timeline);
  const Timeline* timeline() const { return timeline_.get(); }
  int chosen() const { return chosen_; }  ///< index of a span; -1: none
  void choose(int span);                  ///< and brings it into view
  void highlight(const QString& step);    ///< all occurrences stand out; empty: none do
  void fit() { show_range(0, whole()); }
  void zoom_to(int span);
  void zoom_by(double factor, double x);  ///< x: what stays where it is, in pixels
  double shown_begin() const { return from_; }
  double shown_seconds() const { return to_ - from_; }
  QRectF box_of(int span) const;  ///< in the viewport; may lie outside of it

 Q_SIGNALS:
  void span_chosen(int span);

 protected:
  void paintEvent(QPaintEvent*) override;
  void resizeEvent(QResizeEvent*) override { update_scroll_range(); }
  void wheelEvent(QWheelEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void mouseMoveEvent(QMouseEvent*) override;
  void mouseReleaseEvent(QMouseEvent*) override;
  void mouseDoubleClickEvent(QMouseEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  bool viewportEvent(QEvent*) override;  ///< what a step is, as a tooltip

 private:
  void show_range(double from, double to);
  double whole() const;                 ///< seconds of the time line
  double allowed(double length) const;  ///< the nearest one that may be shown
  double x_of(double seconds) const;
  int at(QPointF point) const;
  void walk(int key);
  void set_chosen(int span);
  void update_scroll_range();
  void paint_axis(QPainter& painter) const;
  void paint_span(QPainter& painter, int span, const QRectF& box) const;

  std::shared_ptr<const Timeline> timeline_;
  std::vector<int> tops_;       ///< of tracks, in pixels below the axis
  std::vector<double> shares_;  ///< of spans: time of their step's own, over the most
  double from_ = 0, to_ = 1;    ///< seconds at the edges
  int chosen_ = -1;
  std::string highlighted_;
  QPointF drag_from_;
  bool pressed_ = false, dragged_ = false;
};

}  // namespace partita::views
