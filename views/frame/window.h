#pragma once
#include <QMainWindow>
#include <functional>

class QAction;

namespace partita {
struct Diagnostic;
}

namespace partita::views {

struct Theme;

/// What is used of the machine, for the right end of the status bar.
struct Environment {
  QString text, details;  ///< details: for its tooltip
};

/// What views ask of the window that they are in. It is made above them, in views/window.
class Window : public QMainWindow {
  Q_OBJECT

 public:
  virtual const Theme& theme() const = 0;

  virtual void show_view(QWidget* view) = 0;       ///< brings its page, dock or tab to the front
  virtual bool in_front(QWidget* view) const = 0;  ///< its page or tab is the chosen one
  virtual void focus(QWidget* view) = 0;           ///< gives its first field, table or picture the keyboard
  virtual QWidget* page() const = 0;
  virtual QWidget* empty_page() = 0;  ///< what is shown before a file is open
  /// On this page the panels at the right are empty: they are hidden there, unless the user shows them.
  virtual void use_alone(QWidget* page) = 0;
  /// Says on a page with a title what it shows.
  virtual void name_page(QWidget* page, const QString& what) = 0;
  virtual void close_page() = 0;  ///< back to the picture or the text that a page like Values covers
  /// A bar below the pages.
  virtual void set_page_bar(QWidget* bar) = 0;

  /// Adds to a menu ("File"), or to one within it ("View/Theme": a menu is not to be higher than a small window), to
  /// the palette, and to the window's shortcuts.
  virtual QAction* add_command(const QString& path, const QString& text, const QKeySequence& shortcut,
                               std::function<void()> run) = 0;
  /// Offers an action as a button beside the search field.
  virtual void add_tool(QAction* action, const QString& text) = 0;

  virtual void set_breadcrumb(const QString& text) = 0;
  virtual void set_status(const QString& left, const QString& right) = 0;
  virtual void set_environment(const Environment& environment) = 0;
  /// Says in the status bar, and keeps in the log, what was done, and where, or why it was not: as tell() of any
  /// widget.
  virtual void tell(const QString& what) = 0;
  virtual void log(const QString& line, bool error = false) = 0;
  /// Adds to the bar above the picture, with details to copy.
  virtual void show_problem(const QString& text, const QString& details = {}) = 0;
  virtual void clear_problems() = 0;
  /// Shows an error where the user looks; a cancelled job is none.
  void report(const Diagnostic& problem);

 Q_SIGNALS:
  void page_changed();
  void panel_changed();  ///< the panel below was opened or closed, or shows another tab
  void jobs_asked();
};

}  // namespace partita::views
