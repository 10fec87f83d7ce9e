#pragma once
#include <QWidget>

#include "core/schedule/kernel_report.h"

namespace partita::views {

/// The arena over the steps of a plan: a box for each temporary, as wide as it is needed and as high as it is large, at
/// its place; the step with the most bytes is marked.
class MemoryPlot : public QWidget {
  Q_OBJECT

 public:
  explicit MemoryPlot(QWidget* parent = nullptr);
  void set_report(const schedule::KernelReport& report);
  void set_step(int step);  ///< -1: none

 Q_SIGNALS:
  void step_chosen(int step);
  void node_chosen(QString node);

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void keyPressEvent(QKeyEvent*) override;
  bool event(QEvent* event) override;  ///< what a box holds as a tooltip

 private:
  QRectF plot() const { return QRectF(rect()).adjusted(12, 24, -12, -20); }
  QRectF box_of(const schedule::BufferRow& buffer) const;
  const schedule::BufferRow* at(QPointF point) const;

  schedule::KernelReport report_;
  int step_ = -1;
};

}  // namespace partita::views
