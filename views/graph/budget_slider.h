#pragma once
#include <QSlider>
#include <QTimer>
#include <optional>
#include <vector>

#include "core/partition/partition.h"
#include "views/look/theme.h"

namespace partita::views {

/// Describes a memory budget (0..1) by its curve: "budget 50 %: 113 KiB, 116 KiB less, 182 k operations more". With an
/// empty curve it names the budget only.
QString budget_text(const std::vector<BudgetPoint>& curve, double budget, bool sizes_known = true);

/// A slider for the memory that saved values may take. It is drawn over the curve of what each budget would keep; its
/// values are the steps 0..kSteps.
class BudgetSlider : public QSlider {
  Q_OBJECT

 public:
  static constexpr int kSteps = 10;

  explicit BudgetSlider(QWidget* parent = nullptr);
  static QString about();  ///< its tooltip
  /// Empty: not known yet. Without known sizes only shares of bytes are told.
  void set_curve(std::vector<BudgetPoint> curve, bool sizes_known = true);
  void set_budget(double budget);  ///< emits no signal
  /// Bytes that a step under this budget holds, as `query peak` says them; unset: not known.
  void set_held(std::optional<double> bytes);
  QString text() const;  ///< budget_text(), with what a step holds
  double budget() const { return static_cast<double>(value()) / kSteps; }
  const std::vector<BudgetPoint>& curve() const { return curve_; }
  bool sizes_known() const { return sizes_known_; }
  QSize sizeHint() const override { return {180, 28}; }

 Q_SIGNALS:
  void moved();                       ///< text() changed
  void budget_chosen(double budget);  ///< once the slider has rested for a moment
  void curve_wanted();                ///< pointer or focus came to it, or it moved

 protected:
  void paintEvent(QPaintEvent*) override;
  void mousePressEvent(QMouseEvent*) override;
  void enterEvent(QEnterEvent*) override;
  void focusInEvent(QFocusEvent*) override;

 private:
  double x_of(double share) const;

  std::vector<BudgetPoint> curve_;
  bool sizes_known_ = true;
  std::optional<double> held_;
  QTimer rest_;
};

}  // namespace partita::views
