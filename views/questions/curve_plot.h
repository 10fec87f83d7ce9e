#pragma once
#include <QWidget>

#include "app/tasks/queries.h"

namespace partita::views {

/// Bytes over the steps of a forward and a backward, a line for each way of running them. Graphs of one name lie above
/// one another, however many steps each has.
class CurvePlot : public QWidget {
  Q_OBJECT

 public:
  explicit CurvePlot(QWidget* parent = nullptr);
  QSize sizeHint() const override { return {360, 120}; }
  void set_curves(std::vector<QueryCurve> curves);  ///< without any, the plot is hidden

 protected:
  void paintEvent(QPaintEvent*) override;
  bool event(QEvent* event) override;  ///< the steps under the pointer as a tooltip

 private:
  QRectF plot() const { return QRectF(rect()).adjusted(12, 10 + 16 * static_cast<double>(curves_.size()), -12, -20); }
  double most() const;
  double x_of(const QueryCurve& curve, std::size_t step) const;  ///< where the step begins
  QString steps_at(double x) const;

  std::vector<QueryCurve> curves_;
  std::vector<std::string> graphs_;  ///< of all curves, in order
};

}  // namespace partita::views
