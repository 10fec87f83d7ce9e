#pragma once
#include "views/aot/aot_view.h"
#include "views/window/controller.h"

namespace partita::views {

class BudgetSlider;

/// Forward and backward of the current joint graph, its memory budget, and how to make a joint graph.
class AotController : public Controller {
 public:
  explicit AotController(Workbench& bench);
  QWidget* widget() override { return view_; }
  AotView* view() { return view_; }

  void show() override;
  void set_document(const Document& document) override;
  void select(const QString& node) override { view_->select(node); }
  void set_theme(const Theme& theme) override { view_->set_theme(theme); }
  bool shows_cut() const override { return true; }
  QStringList command() const override;

  void make_joint();

 private:
  void make_pair();
  void set_budget(double budget);
  void ask_budget_curve(Document& document);

  AotView* view_;
  BudgetSlider* slider_;
};

}  // namespace partita::views
