#pragma once
#include "views/diff/diff_view.h"
#include "views/frame/controller.h"

namespace partita::views {

/// Compares what is open: whole files, folders and logs, or the ranks of one folder.
class DiffController : public WidgetController<DiffView> {
 public:
  explicit DiffController(Workbench& bench);
  void show() override;
  void set_document(const Document& document) override;
  QStringList command() const override;
  QStringList command_files() const override { return compared_; }

 private:
  void compare();
  void go_to(const QString& path, const QString& graph, const QString& node);

  QStringList compared_;  ///< the files whose differences are shown
  int job_ = 0;
  QString asked_document_, asked_node_;  ///< the node to select once that document is on the screen
};

}  // namespace partita::views
