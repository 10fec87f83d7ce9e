#pragma once
#include "views/passes/passes_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// Runs the passes on the current graph and draws the chosen step in the window's picture.
class PassesController : public WidgetController<PassesView> {
 public:
  explicit PassesController(Workbench& bench);

  void show() override { run(); }
  void set_document(const Document& document) override;
  std::vector<OverlaySource> overlays() override;
  QStringList command() const override;

  void run();

 private:
  bool ran_on_current() const;
  void show_step(int step);

  QString history_of_;  ///< key of the document whose passes are shown
};

}  // namespace partita::views
