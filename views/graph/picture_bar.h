#pragma once
#include <QWidget>
#include <vector>

#include "views/graph/budget_slider.h"
#include "views/picture/graph_view.h"

class QAction;
class QLabel;
class QMenu;
class QToolButton;

namespace partita::views {

/// The bar below the picture. Names the modules that the chosen card is in, chooses what colours mean and, for a joint
/// graph, the memory budget of saved values.
class PictureBar : public QWidget {
  Q_OBJECT

 public:
  explicit PictureBar(QWidget* parent = nullptr);
  /// Adds an action that chooses the overlay of this kind to the menu.
  void add_overlay(OverlayKind kind, QAction* action);
  void set_overlay(OverlayKind kind);
  void set_colours_visible(bool visible);
  void set_modules(std::vector<Crumb> path);
  BudgetSlider* budget() { return budget_; }
  void set_budget_visible(bool visible);

 Q_SIGNALS:
  void module_chosen(QString frame_key);

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void tell_budget();
  void show_modules();

  QToolButton* colours_;
  QMenu* menu_;
  std::vector<Crumb> path_;
  QLabel* modules_ = nullptr;
  QLabel* budget_label_;
  BudgetSlider* budget_;
};

}  // namespace partita::views
