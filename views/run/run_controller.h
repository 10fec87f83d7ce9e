#pragma once
#include "views/run/run_view.h"
#include "views/window/controller.h"

namespace partita::views {

/// Runs the program of the current document as a whole, with a compiler by name.
class RunController : public Controller {
 public:
  explicit RunController(Workbench& bench);
  QWidget* widget() override { return view_; }
  RunView* view() { return view_; }

  void show() override;
  void set_theme(const Theme& theme) override { view_->set_theme(theme); }
  InputsBox* inputs() override { return view_->inputs(); }
  QStringList command() const override;

  void run(const ProgramRequest& request);

 private:
  RunView* view_;
};

}  // namespace partita::views
