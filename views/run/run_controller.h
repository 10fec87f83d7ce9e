#pragma once
#include "views/frame/controller.h"
#include "views/run/run_view.h"

namespace partita::views {

/// Runs the program of the current document as a whole, with a compiler by name.
class RunController : public WidgetController<RunView> {
 public:
  explicit RunController(Workbench& bench);

  void show() override;
  QStringList command() const override;

  void run(const CompilerRequest& request);
  void wait_for(const Document& document) override { set_document(document); }
  void set_document(const Document& document) override;

 private:
  void show_nothing();

  QString ran_;   ///< key of the document that the result belongs to
  int job_ = 0;   ///< that runs it
  QString said_;  ///< of the result on the screen; empty: there is none
};

}  // namespace partita::views
