#pragma once

#include <QStackedWidget>
#include <QVBoxLayout>
#include <map>

#include "views/frame/window.h"
#include "views/look/theme.h"
#include "views/session/jobs.h"
#include "views/window/command_palette.h"
#include "views/window/empty_page.h"
#include "views/window/view_table.h"

class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QTabWidget;
class QToolBar;
class QToolButton;

namespace partita::views {

class ElidedLabel;

/// The frame around the views: pages, docks and tabs, menus, theme, search field, palette, status. It knows no view by
/// name and does no work: what users ask for goes out as signals, what there is to show comes in.
class MainWindow : public Window {
  Q_OBJECT

 public:
  explicit MainWindow(JobTracker& jobs);

  EmptyPage* empty_page() override { return empty_; }
  const Theme& theme() const override { return *theme_; }

  /// Puts the widget of a view in its place.
  void add_view(const ViewRow& row, QWidget* widget);
  /// After the last view: arranges the docks.
  void all_views_added();
  void show_view(QWidget* view) override;
  bool in_front(QWidget* view) const override;
  QWidget* page() const override { return pages_->currentWidget(); }
  void use_alone(QWidget* page) override;
  void name_page(QWidget* page, const QString& what) override;
  void close_page() override;
  void open_bottom(bool open);  ///< or leaves only its tabs
  void set_page_bar(QWidget* bar) override { middle_->addWidget(bar); }
  QAction* add_command(const QString& path, const QString& text, const QKeySequence& shortcut,
                       std::function<void()> run) override;
  void set_palette_source(std::function<std::vector<PaletteEntry>(const QString&)> more) {
    palette_more_ = std::move(more);
  }

  void add_tool(QAction* action, const QString& text) override;
  void show_keys();

  void set_breadcrumb(const QString& text) override;
  void set_status(const QString& left, const QString& right) override;
  void set_environment(const Environment& environment) override;
  void tell(const QString& what) override;
  void focus(QWidget* view) override;
  void log(const QString& line, bool error = false) override;
  void show_problem(const QString& text, const QString& details = {}) override;
  void clear_problems() override;
  void set_recent(const QStringList& recent, const std::vector<Sample>& samples);
  void use_theme(ThemeChoice choice);         ///< for this window
  void set_theme_choice(ThemeChoice choice);  ///< also for windows to come
  void restore_layout();
  /// Makes the window no larger than the screen has room for, its frame included, when it is next shown.
  void fit_screen();
  void reset_layout();  ///< of all kinds of work

 Q_SIGNALS:
  void open_asked(QString path);
  void closing();
  void logged(QString line);
  void problem_shown(QString text);
  void search_changed(QString text);
  void search_next(bool backwards);

 protected:
  void changeEvent(QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_toolbar();
  void make_log();
  void make_menus();
  QDockWidget* add_dock(Qt::DockWidgetArea area, QWidget* content, const QString& title, const char* name);
  void apply_theme();
  void ask_for_file(bool folder);
  void make_page_head(QVBoxLayout* column);
  void refresh_page_head();
  void arrange_docks();
  void arrange_corner();
  void open_palette();
  void follow_work();
  void shrink_to_screen();
  void refresh_tools();
  void place_problem();

  JobTracker& jobs_;
  const Theme* theme_ = nullptr;
  ThemeChoice choice_ = ThemeChoice::System;
  QStackedWidget* pages_;
  QVBoxLayout* middle_;
  EmptyPage* empty_;
  QTabWidget* bottom_;
  QDockWidget* bottom_dock_ = nullptr;
  QPlainTextEdit* log_;
  QLineEdit* search_ = nullptr;  ///< events of other widgets come before it is there
  ElidedLabel *breadcrumb_, *status_left_;
  QLabel *status_right_, *environment_, *problem_text_;
  QWidget* problem_ = nullptr;
  bool problem_below_ = true;  ///< it covers the lower end of the page
  QStringList problems_, problem_details_;
  QWidget *page_head_, *home_ = nullptr;  ///< home: the page that is shown when one with a title is closed
  QLabel* page_title_;
  std::map<QWidget*, QString> page_titles_, page_names_;
  QToolBar* toolbar_;
  struct Tool {
    QAction* shown;
    QToolButton* button;
    QAction* action;
  };
  std::vector<Tool> tools_;
  bool bottom_open_ = false, arranged_ = false;
  QToolButton *jobs_button_, *recent_button_;
  CommandPalette* palette_;
  std::function<std::vector<PaletteEntry>(const QString&)> palette_more_;
  std::vector<std::pair<QString, QAction*>> commands_;
  QByteArray default_layout_;
  std::map<QWidget*, QString> names_;      ///< kinds of work: of pages with a title, of tabs; kAlone
  QString work_ = "reading";               ///< what the window is used for: "reading", else the view in front
  std::map<QString, QByteArray> layouts_;  ///< by kind of work, as it was left
  bool restoring_ = false;
  bool fitting_ = false;  ///< the window is to fit the screen once its frame is known
};

}  // namespace partita::views
