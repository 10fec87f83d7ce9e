#pragma once
#include <QObject>

#include "views/frame/workbench.h"
#include "views/window/main_window.h"

namespace partita::views {

/// A window with all views, from the files that it opens first until it is closed. Makes the views out of their table
/// and the commands that belong to none of them; joins search, palette and recent files to the workbench.
class Session : public QObject, public Workbench {
  Q_OBJECT

 public:
  /// Opens files while the views are being made, and shows the graph of this id as soon as one of them has it.
  explicit Session(WorkbenchTools tools, const QStringList& paths = {}, const QString& graph_id = {});

  MainWindow& window() { return static_cast<MainWindow&>(Workbench::window()); }
  const MainWindow& window() const { return static_cast<const MainWindow&>(Workbench::window()); }
  /// The command that does what is on the screen, for a shell.
  QString command_line() const;

 Q_SIGNALS:
  void failed(const partita::Diagnostic& problem);  ///< nothing of a file could be read, or a graph not be drawn

 private:
  void make_views();
  void add_commands();
  void show_environment();
  void search(const QString& needle);
  void remember(const QString& path);
  void refresh_recent();
  std::vector<PaletteEntry> palette_entries(const QString& typed);
};

}  // namespace partita::views
