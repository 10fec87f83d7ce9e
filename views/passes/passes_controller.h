#pragma once
#include "views/passes/passes_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// Runs the passes on the current graph and draws the chosen step in the window's picture.
class PassesController : public Controller {
 public:
  explicit PassesController(Workbench& bench);
  QWidget* widget() override { return view_; }
  PassesView* view() { return view_; }

  void show() override { run(); }
  void set_document(const Document& document) override;
  void select(const QString& node) override { view_->select(node); }
  void set_theme(const Theme& theme) override { view_->set_theme(theme); }
  std::vector<OverlaySource> overlays() override;
  QStringList command() const override;

  void run();

 private:
  bool ran_on_current() const;
  void show_step(int step);

  PassesView* view_;
  QString history_of_;  ///< key of the document whose passes are shown
};

}  // namespace partita::views
