#pragma once
#include <QWidget>

#include "views/look/theme.h"
#include "views/minify/minify_log.h"

namespace partita::views {

/// Plots the number of calls of the smallest failing graph over time, on a logarithmic scale.
class ShrinkPlot : public QWidget {
  Q_OBJECT

 public:
  explicit ShrinkPlot(QWidget* parent = nullptr);
  void set_curve(std::vector<MinifyLog::Point> curve, double seconds);
  QSize sizeHint() const override { return {240, 110}; }

 protected:
  void paintEvent(QPaintEvent*) override;

 private:
  std::vector<MinifyLog::Point> curve_;
  double seconds_ = 0;
};

}  // namespace partita::views
