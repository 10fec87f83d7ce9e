#pragma once
#include <QWidget>

#include "views/look/theme.h"
#include "views/tensor/tensor_pair.h"

namespace partita::views {

/// Draws a histogram as columns on a logarithmic scale, and a second one over the same bins as a line.
class HistogramPlot : public QWidget {
  Q_OBJECT

 public:
  explicit HistogramPlot(QWidget* parent = nullptr);
  /// `mark` is drawn as an upright line with its name; NaN: none.
  void set_content(const QString& title, const Histogram& columns, const Histogram& line, double mark,
                   const QString& mark_name);
  QSize sizeHint() const override { return {220, 120}; }

 protected:
  void paintEvent(QPaintEvent*) override;
  bool event(QEvent*) override;

 private:
  QRectF plot_box() const { return QRectF(rect()).adjusted(8, 22, -8, -18); }

  QString title_, mark_name_;
  Histogram columns_, line_;
  double mark_ = 0;
};

}  // namespace partita::views
