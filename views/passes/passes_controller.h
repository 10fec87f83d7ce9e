#pragma once
#include "views/frame/controller.h"
#include "views/passes/passes_view.h"

namespace partita::views {

/// Runs the passes on the current graph and draws the chosen step in the window's picture.
class PassesController : public WidgetController<PassesView> {
 public:
  explicit PassesController(Workbench& bench);

  void show() override { run(); }
  void wait_for(const Document& document) override { set_document(document); }
  void set_document(const Document& document) override;
  std::vector<OverlaySource> overlays() override;
  QStringList command() const override;

  /// `check`: also compares the numbers after each pass with those before it.
  void run(bool check = false);
  void show_rewrites(int step);
  /// Changes which passes run, or their order, in the configuration, by which all that is compiled here goes, too.
  void skip(const QString& pass);
  void move(const QString& pass, int places);
  void reset() { configure({{"disable_passes", ""}, {"pass_order", ""}}); }

 private:
  bool ran_on_current() const;
  void configure(const ConfigPatches& patches);
  void show_step(int step);
  void draw(int step);  ///< of a rewrite that was not shown yet

  QString history_of_;  ///< key of the document whose passes are shown
};

}  // namespace partita::views
