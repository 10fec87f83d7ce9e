#include "views/window/main_window.h"

#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <QTabWidget>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWidgetAction>

#include "views/look/arrange.h"
#include "views/look/format.h"

namespace partita::views {

MainWindow::MainWindow(JobTracker& jobs) : jobs_(jobs) {
  setWindowTitle("Partita");
  setAcceptDrops(true);
  setDockOptions(QMainWindow::AllowNestedDocks | QMainWindow::AllowTabbedDocks);
  resize(1440, 900);

  auto* middle = new QWidget;
  auto* column = plain_column(middle);
  problem_ = new QWidget;
  auto* bar = new QHBoxLayout(problem_);
  bar->setContentsMargins(12, 6, 8, 6);
  problem_text_ = new QLabel;
  problem_text_->setObjectName("error");
  problem_text_->setWordWrap(true);
  problem_text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  bar->addWidget(problem_text_, 1);
  auto* copy = new QPushButton(tr("Copy details"));
  connect(copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(problem_details_); });
  auto* dismiss = new QPushButton(tr("Dismiss"));
  connect(dismiss, &QPushButton::clicked, this, [this] { problem_->hide(); });
  bar->addWidget(copy);
  bar->addWidget(dismiss);
  problem_->hide();
  column->addWidget(problem_);
  pages_ = new QStackedWidget;
  column->addWidget(pages_, 1);
  middle_ = column;
  connect(pages_, &QStackedWidget::currentChanged, this, &MainWindow::page_changed);
  setCentralWidget(middle);
  empty_ = new EmptyPage;
  pages_->addWidget(empty_);
  connect(empty_, &EmptyPage::open_asked, this, &MainWindow::open_asked);

  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  setCorner(Qt::BottomLeftCorner, Qt::BottomDockWidgetArea);
  make_toolbar();
  make_log();
  make_menus();
  status_left_ = new QLabel;
  status_right_ = new QLabel;
  status_right_->setObjectName("dim");
  statusBar()->addWidget(status_left_, 1);
  statusBar()->addPermanentWidget(status_right_);
  statusBar()->setSizeGripEnabled(false);
  statusBar()->setContentsMargins(12, 0, 12, 0);
  palette_ = new CommandPalette(this);
  connect(&jobs_, &JobTracker::changed, this, [this] {
    auto rows = jobs_.rows();
    jobs_button_->setText(rows.empty() ? tr("Jobs") : tr("Jobs %1").arg(rows.size()));
    jobs_button_->setVisible(!rows.empty());
    jobs_button_->setToolTip(rows.empty() ? QString() : rows.back().name + "  " + rows.back().at);
  });
  choice_ = static_cast<ThemeChoice>(QSettings().value("theme", 0).toInt());
  apply_theme();
}

void MainWindow::make_toolbar() {
  auto* bar = addToolBar(tr("Main"));
  bar->setObjectName("toolbar");
  bar->setMovable(false);
  bar->setContextMenuPolicy(Qt::PreventContextMenu);
  auto* open = new QToolButton;
  open->setText(tr("Open"));
  open->setToolTip(tr("Open a file (Ctrl+O)"));
  connect(open, &QToolButton::clicked, this, [this] { ask_for_file(false); });
  bar->addWidget(open);
  recent_button_ = new QToolButton;
  recent_button_->setText(tr("Recent ▾"));
  recent_button_->setPopupMode(QToolButton::InstantPopup);
  recent_menu_ = new QMenu(this);
  recent_button_->setMenu(recent_menu_);
  bar->addWidget(recent_button_);
  breadcrumb_ = new QLabel;
  breadcrumb_->setIndent(12);
  breadcrumb_->setTextFormat(Qt::PlainText);
  breadcrumb_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  bar->addWidget(breadcrumb_);
  search_ = new QLineEdit;
  search_->setPlaceholderText(tr("Search  /      Commands  Ctrl+K"));
  search_->setAccessibleName(tr("Search"));
  search_->setClearButtonEnabled(true);
  search_->setFixedWidth(320);
  search_->installEventFilter(this);
  connect(search_, &QLineEdit::textChanged, this, &MainWindow::search_changed);
  bar->addWidget(search_);
  jobs_button_ = new QToolButton;
  jobs_button_->setText(tr("Jobs"));
  connect(jobs_button_, &QToolButton::clicked, this, &MainWindow::show_jobs);
  auto* action = bar->addWidget(jobs_button_);
  connect(&jobs_, &JobTracker::changed, action, [this, action] { action->setVisible(!jobs_.idle()); });
  action->setVisible(false);
}

QDockWidget* MainWindow::add_dock(Qt::DockWidgetArea area, QWidget* content, const QString& title, const char* name) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(name);
  auto* heading = new QLabel(title.toUpper());
  heading->setObjectName("panelTitle");
  heading->setContentsMargins(12, 6, 12, 6);
  QFont small = interface_font();
  small.setPointSizeF(8);
  small.setLetterSpacing(QFont::AbsoluteSpacing, 0.6);
  heading->setFont(small);
  dock->setTitleBarWidget(heading);
  dock->setWidget(content);
  addDockWidget(area, dock);
  QAction* toggle = dock->toggleViewAction();
  add_command("View", tr("Show or hide %1").arg(title.toLower()), {}, [toggle] { toggle->trigger(); });
  return dock;
}

void MainWindow::make_log() {
  bottom_ = new QTabWidget;
  bottom_->setDocumentMode(true);
  log_ = new QPlainTextEdit;
  log_->setReadOnly(true);
  log_->setFrameShape(QFrame::NoFrame);
  log_->setFont(code_font());
  log_->setMaximumBlockCount(5000);
  log_->setAccessibleName(tr("Log"));
  bottom_->addTab(log_, tr("Log"));
}

void MainWindow::add_view(const ViewRow& row, QWidget* widget) {
  const QString title = tr(row.title);
  switch (row.place) {
    case Place::Left:
      add_dock(Qt::LeftDockWidgetArea, widget, title, row.name);
      break;
    case Place::Right:
      add_dock(Qt::RightDockWidgetArea, widget, title, row.name);
      break;
    case Place::Page:
      pages_->addWidget(widget);
      if (!title.isEmpty())
        add_command("View", tr("Show %1").arg(title), {}, [this, widget] { pages_->setCurrentWidget(widget); });
      break;
    case Place::Tab:  // the log stays the last one
      bottom_->insertTab(bottom_->count() - 1, widget, title);
      bottom_->setCurrentIndex(0);
      break;
  }
}

void MainWindow::all_views_added() {
  bottom_dock_ = add_dock(Qt::BottomDockWidgetArea, bottom_, tr("Details"), "bottom");
  bottom_dock_->setTitleBarWidget(new QWidget);
  auto docks_at = [this](Qt::DockWidgetArea area) {
    QList<QDockWidget*> docks;
    for (auto* dock : findChildren<QDockWidget*>())
      if (dockWidgetArea(dock) == area) docks << dock;
    return docks;
  };
  const QList<QDockWidget*> left = docks_at(Qt::LeftDockWidgetArea), right = docks_at(Qt::RightDockWidgetArea);
  resizeDocks({left.first(), right.first()}, {260, 440}, Qt::Horizontal);
  resizeDocks(right, {520, 380}, Qt::Vertical);
  resizeDocks({bottom_dock_}, {250}, Qt::Vertical);
  default_layout_ = saveState();
}

QAction* MainWindow::add_command(const QString& menu, const QString& text, const QKeySequence& shortcut,
                                 std::function<void()> run) {
  QMenu* target = nullptr;  // tooltips say why an entry cannot be chosen
  for (QAction* action : menuBar()->actions())
    if (action->text() == menu) target = action->menu();
  if (!target) {
    target = menuBar()->addMenu(menu);
    target->setToolTipsVisible(true);
  }
  QAction* action = target->addAction(text, this, std::move(run));
  action->setShortcut(shortcut);
  action->setShortcutContext(Qt::WindowShortcut);
  commands_.emplace_back(menu, action);
  return action;
}

void MainWindow::make_menus() {
  add_command("File", tr("Open file…"), QKeySequence::Open, [this] { ask_for_file(false); });
  add_command("File", tr("Open folder…"), QKeySequence("Ctrl+Shift+O"), [this] { ask_for_file(true); });
  add_command("File", tr("Quit"), QKeySequence::Quit, [this] { close(); });
  add_command("Edit", tr("Search"), QKeySequence::Find, [this] {
    search_->setFocus();
    search_->selectAll();
  });
  add_command("Edit", tr("Next hit"), QKeySequence("F3"), [this] { Q_EMIT search_next(false); });
  add_command("Edit", tr("Previous hit"), QKeySequence("Shift+F3"), [this] { Q_EMIT search_next(true); });
  add_command("Edit", tr("Run a command…"), QKeySequence("Ctrl+K"), [this] { open_palette(); });
  add_command("View", tr("Theme: as the system"), {}, [this] { set_theme_choice(ThemeChoice::System); });
  add_command("View", tr("Theme: light"), {}, [this] { set_theme_choice(ThemeChoice::Light); });
  add_command("View", tr("Theme: dark"), {}, [this] { set_theme_choice(ThemeChoice::Dark); });
  add_command("View", tr("Reset the layout"), {}, [this] { reset_layout(); });
  add_command("View", tr("Focus the picture"), QKeySequence("F6"), [this] { pages_->currentWidget()->setFocus(); });
}

void MainWindow::set_page_bar(QWidget* bar) {
  middle_->addWidget(bar);
}

void MainWindow::show_view(QWidget* view) {
  if (pages_->indexOf(view) >= 0) return pages_->setCurrentWidget(view);
  if (bottom_->indexOf(view) >= 0) {
    bottom_->setCurrentWidget(view);
    return bottom_dock_->show();
  }
  for (auto* dock : findChildren<QDockWidget*>())
    if (dock->widget() == view) {
      dock->show();
      dock->raise();
    }
}

bool MainWindow::in_front(QWidget* view) const {
  return pages_->currentWidget() == view || bottom_->currentWidget() == view;
}

QWidget* MainWindow::page() const {
  return pages_->currentWidget();
}

void MainWindow::set_breadcrumb(const QString& text) {
  breadcrumb_->setText(text);
  setWindowTitle(text.isEmpty() ? "Partita" : text + " - Partita");
}

void MainWindow::set_status(const QString& left, const QString& right) {
  status_left_->setText(left);
  status_right_->setText(right);
}

void MainWindow::log(const QString& line, bool error) {
  QString colour = (error ? theme_->bad : theme_->ink).name();
  log_->appendHtml(QString("<span style='color:%1'>%2</span>").arg(colour, line.toHtmlEscaped()));
}

void MainWindow::show_problem(const QString& text, const QString& details) {
  problem_->setVisible(!text.isEmpty());
  problem_text_->setText(text);
  problem_details_ = details.isEmpty() ? text : details;
  if (!text.isEmpty()) log(problem_details_, true);
}

void MainWindow::set_recent(const QStringList& recent, const std::vector<EmptyPage::Sample>& samples) {
  recent_menu_->clear();
  for (const QString& path : recent) recent_menu_->addAction(path, this, [this, path] { Q_EMIT open_asked(path); });
  recent_button_->setEnabled(!recent.isEmpty());
  empty_->set_content(samples, recent);
}

void MainWindow::use_theme(ThemeChoice choice) {
  choice_ = choice;
  apply_theme();
}

void MainWindow::set_theme_choice(ThemeChoice choice) {
  QSettings().setValue("theme", static_cast<int>(choice));
  use_theme(choice);
}

void MainWindow::apply_theme() {
  const Theme& theme = resolve_theme(choice_);
  if (theme_ == &theme) return;
  theme_ = &theme;
  Theme::set_current(theme);
  setPalette(theme.palette());
  setStyleSheet(theme.style_sheet());
}

void MainWindow::changeEvent(QEvent* event) {
  if (event->type() == QEvent::ThemeChange) apply_theme();
  QMainWindow::changeEvent(event);
}

void MainWindow::restore_layout() {
  QSettings settings;
  restoreGeometry(settings.value("geometry").toByteArray());
  restoreState(settings.value("layout").toByteArray());
}

void MainWindow::reset_layout() {
  restoreState(default_layout_);
  for (auto* dock : findChildren<QDockWidget*>()) dock->show();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  QSettings settings;
  settings.setValue("geometry", saveGeometry());
  settings.setValue("layout", saveState());
  jobs_.cancel_all();
  QMainWindow::closeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) Q_EMIT open_asked(url.toLocalFile());
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Slash) {
    search_->setFocus();
    search_->selectAll();
    return;
  }
  QMainWindow::keyPressEvent(event);
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (watched == search_ && event->type() == QEvent::KeyPress) {
    auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
      Q_EMIT search_next(key->modifiers() & Qt::ShiftModifier);
      return true;
    }
    if (key->key() == Qt::Key_Escape) {
      search_->clear();
      pages_->currentWidget()->setFocus();
      return true;
    }
  }
  return QMainWindow::eventFilter(watched, event);
}

void MainWindow::ask_for_file(bool folder) {
  auto* dialog = new QFileDialog(this, folder ? tr("Open folder") : tr("Open file"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(folder ? QFileDialog::Directory : QFileDialog::ExistingFiles);
  if (!folder)
    dialog->setNameFilters({tr("Graphs (*.py *.pt2 *.log *.input *.pt *.safetensors *.txt)"), tr("All files (*)")});
  connect(dialog, &QFileDialog::filesSelected, this, [this](const QStringList& paths) {
    for (const QString& path : paths) Q_EMIT open_asked(path);
  });
  dialog->open();
}

void MainWindow::open_palette() {
  std::vector<PaletteEntry> entries;
  for (const auto& [menu, action] : commands_) {
    if (!action->isEnabled()) continue;
    entries.push_back({menu + ": " + action->text(), action->shortcut().toString(QKeySequence::NativeText),
                       [action = action] { action->trigger(); }});
  }
  palette_->open(std::move(entries), palette_more_);
}

void MainWindow::show_jobs() {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  for (const JobRow& row : jobs_.rows()) {
    QString text = row.name + (row.at.isEmpty() ? "" : "  " + row.at);
    if (row.fraction >= 0) text += QString("  %1 %").arg(static_cast<int>(row.fraction * 100));
    text += "  " + seconds_text(row.seconds);
    menu->addAction(tr("Cancel: %1").arg(text), this, [this, id = row.id] { jobs_.cancel(id); });
  }
  menu->popup(jobs_button_->mapToGlobal(QPoint(0, jobs_button_->height())));
}

}  // namespace partita::views
