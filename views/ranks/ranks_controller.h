#pragma once
#include "views/frame/controller.h"
#include "views/ranks/ranks_view.h"

namespace partita::views {

/// Shows the ranks of the folder that the document on the screen is of.
class RanksController : public WidgetController<RanksView> {
 public:
  explicit RanksController(Workbench& bench);
  void show() override;
  void set_document(const Document& document) override;
  QStringList command() const override;

 private:
  void go_to_node();

  QString path_, graph_;  ///< whose ranks are shown; empty: none
};

}  // namespace partita::views
