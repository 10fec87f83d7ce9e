#pragma once

#include <QLabel>
#include <QToolButton>
#include <QWidget>
#include <vector>

#include "views/graph/budget_slider.h"
#include "views/picture/graph_view.h"

class QAction;

namespace partita::views {

/// The bar below the picture. Names the modules that the chosen card is in, chooses what colours mean and, for a joint
/// graph, the memory budget of saved values.
class PictureBar : public QWidget {
  Q_OBJECT

 public:
  explicit PictureBar(QWidget* parent = nullptr);
  /// Adds an action that chooses the overlay of this kind to the menu.
  void add_overlay(OverlayKind kind, QAction* action);
  void set_overlay(OverlayKind kind) { colours_->setText(tr("Colour by %1 ▾").arg(overlay_name(kind).toLower())); }
  void set_colours_visible(bool visible) { colours_->setVisible(visible); }
  void set_modules(std::vector<Crumb> path);
  BudgetSlider* budget() { return budget_; }
  void set_budget_visible(bool visible);

 Q_SIGNALS:
  void module_chosen(QString frame_key);

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void tell_budget() { budget_label_->setText(budget_->text()); }
  void show_modules();

  QToolButton* colours_;
  std::vector<Crumb> path_;
  QLabel* modules_ = nullptr;
  QLabel* budget_label_;
  BudgetSlider* budget_;
};

}  // namespace partita::views
