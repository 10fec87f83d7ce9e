#pragma once
#include <QWidget>

#include "views/graph/budget_slider.h"
#include "views/graph/overlay.h"

class QAction;
class QLabel;
class QMenu;
class QToolButton;

namespace partita::views {

/// Below the picture: what its colours say, and of a joint graph how much memory its cut may take.
class PictureBar : public QWidget {
  Q_OBJECT

 public:
  explicit PictureBar(QWidget* parent = nullptr);
  /// An action chooses the overlay of its kind; the bar shows it in its menu.
  void add_overlay(OverlayKind kind, QAction* action);
  void set_overlay(OverlayKind kind);
  void set_colours_visible(bool visible);
  void set_theme(const Theme& theme);
  BudgetSlider* budget() { return budget_; }
  void set_budget_visible(bool visible);

 private:
  void tell_budget();

  QToolButton* colours_;
  QMenu* menu_;
  QLabel* budget_label_;
  BudgetSlider* budget_;
};

}  // namespace partita::views
