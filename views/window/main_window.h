#pragma once
#include <QMainWindow>
#include <map>

#include "views/code/code_view.h"
#include "views/graph/graph_view.h"
#include "views/graph/picture_bar.h"
#include "views/inspector/inspector.h"
#include "views/session/artefact_tree.h"
#include "views/session/jobs.h"
#include "views/window/command_palette.h"
#include "views/window/empty_page.h"

class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QStackedWidget;
class QToolButton;
class QTreeView;
class QMenu;

namespace partita::views {

/// The frame: docks, menus, theme, search field, palette, status. It knows its views and no work: what users ask for
/// goes out as signals, what there is to show comes in.
class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(JobTracker& jobs);

  GraphView* graph() { return graph_; }
  CodeView* code() { return code_; }
  CodeView* text() { return text_; }  ///< the page for documents that are no graphs
  PictureBar* picture_bar() { return picture_bar_; }
  Inspector* inspector() { return inspector_; }
  EmptyPage* empty_page() { return empty_; }
  QTreeView* tree() { return tree_; }
  const Theme& theme() const { return *theme_; }

  /// Pages of the middle; added ones are reachable from the View menu.
  int add_page(QWidget* page, const QString& title);
  /// An added page that shows the cut as well: the budget stands below it.
  void set_pair_page(QWidget* page) { pair_page_ = page; }
  void show_page(QWidget* page);
  QWidget* page() const;
  /// A tab of the bottom dock.
  void add_bottom(QWidget* widget, const QString& title);
  void show_bottom(const QString& title);
  QString bottom_title() const;
  /// Adds to a menu ("File", "View", ...), to the palette, and to the window's shortcuts.
  QAction* add_command(const QString& menu, const QString& text, const QKeySequence& shortcut,
                       std::function<void()> run);
  void set_palette_source(std::function<std::vector<PaletteEntry>(const QString&)> more) {
    palette_more_ = std::move(more);
  }

  void set_overlay(OverlayKind kind);
  /// Whether there is something to colour by; `hint` says how to get it when there is not.
  void set_overlay_known(OverlayKind kind, bool known, const QString& hint);
  QAction* overlay_action(OverlayKind kind) { return overlays_.at(kind); }
  void set_joint(bool joint);  ///< the picture on the screen has a cut to choose a budget for

  void set_breadcrumb(const QString& text);
  void set_status(const QString& left, const QString& right);
  void log(const QString& line, bool error = false);
  /// Where it happened, quietly: a bar above the picture with details to copy; empty hides it.
  void show_problem(const QString& text, const QString& details = {});
  void set_recent(const QStringList& recent, const std::vector<EmptyPage::Sample>& samples);
  void set_theme_choice(ThemeChoice choice);
  void restore_layout();
  void reset_layout();

 Q_SIGNALS:
  void open_asked(QString path);
  void document_asked(QString key);
  void theme_changed(const partita::views::Theme& theme);
  void search_changed(QString text);
  void search_next(bool backwards);

 protected:
  void changeEvent(QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_toolbar();
  void make_docks();
  void make_menus();
  QDockWidget* add_dock(Qt::DockWidgetArea area, QWidget* content, const QString& title, const char* name);
  void apply_theme();
  void arrange_bar();
  void ask_for_file(bool folder);
  void open_palette();
  void show_jobs();

  JobTracker& jobs_;
  const Theme* theme_ = nullptr;
  ThemeChoice choice_ = ThemeChoice::System;
  QStackedWidget* pages_;
  PictureBar* picture_bar_;
  QWidget* pair_page_ = nullptr;
  bool joint_ = false;
  std::map<OverlayKind, QAction*> overlays_;
  EmptyPage* empty_;
  GraphView* graph_;
  CodeView *code_, *text_;
  Inspector* inspector_;
  QTreeView* tree_;
  QTabWidget* bottom_;
  QDockWidget* bottom_dock_ = nullptr;
  QPlainTextEdit* log_;
  QLineEdit* search_;
  QLabel *breadcrumb_, *status_left_, *status_right_, *problem_text_;
  QWidget* problem_;
  QString problem_details_;
  QToolButton *jobs_button_, *recent_button_;
  QMenu* recent_menu_;
  CommandPalette* palette_;
  std::function<std::vector<PaletteEntry>(const QString&)> palette_more_;
  std::vector<std::pair<QString, QAction*>> commands_;
  QByteArray default_layout_;
};

}  // namespace partita::views
