#pragma once
#include "views/run/run_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// Runs the program of the current document as a whole, with a compiler by name.
class RunController : public WidgetController<RunView> {
 public:
  explicit RunController(Workbench& bench);

  void show() override;
  QStringList command() const override;

  void run(const ProgramRequest& request);
};

}  // namespace partita::views
