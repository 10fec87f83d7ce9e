#pragma once
#include <QSlider>
#include <QTimer>
#include <vector>

#include "core/partition/partition.h"
#include "views/look/theme.h"

namespace partita::views {

/// What a memory budget (0..1) means on a curve: "budget 50 %: 113 KiB, 116 KiB less, 182 k operations more". Of an
/// empty curve only the share.
QString budget_text(const std::vector<BudgetPoint>& curve, double budget);

/// Chooses how much memory the saved values may take, over the curve of what each choice keeps. Its values are steps
/// 0..kSteps.
class BudgetSlider : public QSlider {
  Q_OBJECT

 public:
  static constexpr int kSteps = 10;

  explicit BudgetSlider(QWidget* parent = nullptr);
  void set_curve(std::vector<BudgetPoint> curve);  ///< empty: not known yet
  void set_budget(double budget);                  ///< says nothing to anybody
  double budget() const { return static_cast<double>(value()) / kSteps; }
  const std::vector<BudgetPoint>& curve() const { return curve_; }
  void set_theme(const Theme& theme);
  QSize sizeHint() const override { return {180, 28}; }

 Q_SIGNALS:
  void moved();                       ///< the text beside it is another
  void budget_chosen(double budget);  ///< once the hand rests

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent*) override;

 private:
  double x_of(double share) const;

  std::vector<BudgetPoint> curve_;
  const Theme* theme_ = &Theme::light();
  QTimer rest_;
};

}  // namespace partita::views
