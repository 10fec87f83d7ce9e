// MainWindow builds toolbar, pages, docks, log and menus, and shows status, problems and the theme. All commands are in
// one list, which menus, palette and the page of keys read. Layouts are in window_layout.cpp.
#include "views/window/main_window.h"

#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QDialog>
#include <QDockWidget>
#include <QFileDialog>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QSettings>
#include <QStatusBar>
#include <QStatusTipEvent>
#include <QTabBar>
#include <QTabWidget>
#include <QTextBrowser>
#include <QToolBar>
#include <QToolButton>
#include <algorithm>

#include "views/look/arrange.h"
#include "views/look/elided_label.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

/// Asks for the same width whatever its text is: a longer one moves no button beside it.
class Breadcrumb : public ElidedLabel {
 public:
  using ElidedLabel::ElidedLabel;
  QSize sizeHint() const override { return {minimumWidth(), ElidedLabel::sizeHint().height()}; }
  QSize minimumSizeHint() const override { return sizeHint(); }
};

}  // namespace

MainWindow::MainWindow(JobTracker& jobs) : jobs_(jobs) {
  setWindowTitle("Partita");
  setAcceptDrops(true);
  setDockOptions(QMainWindow::AllowNestedDocks | QMainWindow::AllowTabbedDocks);
  resize(1440, 900);

  auto* middle = new QWidget;
  auto* column = plain_column(middle);
  problem_ = new QWidget(middle);
  problem_->setObjectName("problemBar");
  problem_->setAttribute(Qt::WA_StyledBackground);
  middle->installEventFilter(this);
  auto* bar = new QHBoxLayout(problem_);
  bar->setContentsMargins(12, 6, 8, 6);
  problem_text_ = styled_label("error");
  make_readable(problem_text_);
  bar->addWidget(problem_text_, 1);
  const auto copy = [this] {
    QApplication::clipboard()->setText(problem_details_.join('\n'));
    tell(tr("Copied the details of %1 to the clipboard").arg(count_text(problem_details_.size(), "problem")));
  };
  add_all(bar, {button_of(tr("Copy details"), this, copy),
                button_of(tr("Dismiss  Esc"), this, &MainWindow::clear_problems)});
  problem_->hide();
  make_page_head(column);
  pages_ = new QStackedWidget;
  column->addWidget(pages_, 1);
  middle_ = column;
  connect(pages_, &QStackedWidget::currentChanged, this, [this] {
    refresh_page_head();
    Q_EMIT page_changed();
    follow_work();
  });
  setCentralWidget(middle);
  empty_ = new EmptyPage;
  pages_->addWidget(empty_);
  connect(empty_, &EmptyPage::open_asked, this, &MainWindow::open_asked);

  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  setCorner(Qt::BottomLeftCorner, Qt::BottomDockWidgetArea);
  make_toolbar();
  make_log();
  make_menus();
  status_left_ = new ElidedLabel;
  status_left_->setTextFormat(Qt::PlainText);
  status_right_ = styled_label("dim");
  statusBar()->addWidget(status_left_, 1);
  environment_ = styled_label("dim");
  environment_->setContentsMargins(16, 0, 0, 0);  // apart from what is said of the graph
  statusBar()->addPermanentWidget(status_right_);
  statusBar()->addPermanentWidget(environment_);
  statusBar()->setSizeGripEnabled(false);
  statusBar()->setContentsMargins(12, 0, 12, 0);
  palette_ = new CommandPalette(this);
  connect(&jobs_, &JobTracker::changed, this, [this] {
    auto rows = jobs_.rows();
    jobs_button_->setText(rows.empty() ? tr("Jobs") : tr("Jobs %1").arg(rows.size()));
    jobs_button_->setToolTip(rows.empty() ? QString() : rows.back().name + "  " + rows.back().at);
  });
  choice_ = static_cast<ThemeChoice>(QSettings().value("theme", 0).toInt());
  apply_theme();
  jobs_button_->setText(tr("Jobs %1").arg(99));
  jobs_button_->ensurePolished();
  jobs_button_->setFixedWidth(jobs_button_->sizeHint().width());  // no button moves when a job begins or ends
  jobs_button_->setText(tr("Jobs"));
}

void MainWindow::make_toolbar() {
  auto* bar = toolbar_ = addToolBar(tr("Main"));
  bar->setObjectName("toolbar");
  bar->setMovable(false);
  bar->setContextMenuPolicy(Qt::PreventContextMenu);
  auto* open = new QToolButton;
  open->setText(tr("Open"));
  open->setToolTip(tr("Open a file (Ctrl+O)"));
  connect(open, &QToolButton::clicked, this, [this] { ask_for_file(false); });
  bar->addWidget(open);
  recent_button_ = menu_button(tr("Recent ▾"), {});
  bar->addWidget(recent_button_);
  breadcrumb_ = new Breadcrumb(Qt::ElideLeft);  // the file is in the window's title, too
  breadcrumb_->setContentsMargins(8, 0, 8, 0);
  breadcrumb_->setTextFormat(Qt::PlainText);
  breadcrumb_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  breadcrumb_->setMinimumWidth(100);
  bar->addWidget(breadcrumb_);
  search_ = new QLineEdit;
  search_->setPlaceholderText(tr("Search  /      Commands  Ctrl+K"));
  search_->setAccessibleName(tr("Search"));
  search_->setObjectName("search");
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(80);
  search_->setMaximumWidth(320);
  search_->installEventFilter(this);
  connect(search_, &QLineEdit::textChanged, this, &MainWindow::search_changed);
  bar->addWidget(search_);
  jobs_button_ = new QToolButton;
  connect(jobs_button_, &QToolButton::clicked, this, &MainWindow::jobs_asked);
  bar->addWidget(jobs_button_);
}

void MainWindow::add_tool(QAction* action, const QString& text) {
  auto* button = new QToolButton;
  button->setText(text);
  button->setToolTip(action->text() + "  " + action->shortcut().toString(QKeySequence::NativeText));
  connect(button, &QToolButton::clicked, action, &QAction::trigger);
  button->setFocusPolicy(Qt::ClickFocus);  // by keyboard: the shortcut
  // A later one stands before: the views that offer the first steps (the joint graph, passes) come last in the table.
  const QList<QAction*> all = toolbar_->actions();
  const auto place =
      std::ranges::find_if(all, [this](QAction* a) { return toolbar_->widgetForAction(a) == breadcrumb_; });
  QAction* shown = toolbar_->insertWidget(*(place + 1), button);
  tools_.push_back({shown, button, action});
  connect(action, &QAction::changed, this, &MainWindow::refresh_tools);
  refresh_tools();
}

// A tool that cannot be used is greyed: if it went, the next one would stand under the mouse. Only where there is no
// room for all are those left out.
void MainWindow::refresh_tools() {
  constexpr int kRoomForAll = 1200;
  for (const Tool& tool : tools_) {
    tool.button->setEnabled(tool.action->isEnabled());
    tool.shown->setVisible(tool.action->isEnabled() || width() >= kRoomForAll);
  }
}

// A page with a title says what it is and can be closed; the picture and plain texts have none.
void MainWindow::make_page_head(QVBoxLayout* column) {
  page_head_ = new QWidget;
  page_head_->setObjectName("pictureBar");
  page_head_->setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(page_head_);
  row->setContentsMargins(12, 2, 4, 2);
  page_title_ = new QLabel;
  page_title_->setObjectName("heading");
  row->addWidget(page_title_, 1);
  auto* close = new QToolButton;
  close->setText(tr("Close  Esc"));
  close->setToolTip(tr("Back to the picture"));
  close->setAccessibleName(tr("Close this page"));
  connect(close, &QToolButton::clicked, this, &MainWindow::close_page);
  row->addWidget(close);
  page_head_->hide();
  column->addWidget(page_head_);
}

void MainWindow::refresh_page_head() {
  // Only the page that is seen asks for width: the wide ones would keep the docks from theirs.
  for (int i = 0; i < pages_->count(); ++i) {
    const auto policy = i == pages_->currentIndex() ? QSizePolicy::Preferred : QSizePolicy::Ignored;
    pages_->widget(i)->setSizePolicy(policy, policy);
  }
  const auto title = page_titles_.find(pages_->currentWidget());
  const bool titled = title != page_titles_.end();
  page_head_->setVisible(titled);
  if (!titled) {
    home_ = pages_->currentWidget();
    return;
  }
  const QString& what = page_names_[title->first];
  page_title_->setText(title->second.left(1).toUpper() + title->second.mid(1) + (what.isEmpty() ? "" : "  ·  " + what));
}

void MainWindow::name_page(QWidget* page, const QString& what) {
  page_names_[page] = what;
  refresh_page_head();
}

void MainWindow::close_page() {
  if (!page_titles_.contains(pages_->currentWidget()) || !home_) return;
  pages_->setCurrentWidget(home_);
  home_->setFocus();
}

QDockWidget* MainWindow::add_dock(Qt::DockWidgetArea area, QWidget* content, const QString& title, const char* name) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(name);
  auto* heading = styled_label("panelTitle", title.toUpper());
  heading->setContentsMargins(12, 6, 12, 6);
  QFont small = interface_font();
  small.setPointSizeF(8);
  small.setLetterSpacing(QFont::AbsoluteSpacing, 0.6);
  heading->setFont(small);
  dock->setTitleBarWidget(heading);
  dock->setWidget(content);
  addDockWidget(area, dock);
  QAction* toggle = dock->toggleViewAction();
  add_command("View/Show", tr("Show or hide %1").arg(title.toLower()), {}, [toggle] { toggle->trigger(); });
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
  if (widget->accessibleName().isEmpty()) widget->setAccessibleName(title);
  switch (row.place) {
    case ViewPlace::Left:
      add_dock(Qt::LeftDockWidgetArea, widget, title, row.name);
      break;
    case ViewPlace::Right:
      add_dock(Qt::RightDockWidgetArea, widget, title, row.name);
      break;
    case ViewPlace::Page:
      pages_->addWidget(widget);
      widget->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Ignored);
      if (!title.isEmpty()) page_titles_[widget] = title, names_.try_emplace(widget, row.name);
      break;
    case ViewPlace::Tab:  // the log stays the last one
      names_[widget] = row.name;
      bottom_->insertTab(bottom_->count() - 1, widget, title);
      bottom_->setCurrentIndex(0);
      break;
  }
}

void MainWindow::all_views_added() {
  bottom_dock_ = add_dock(Qt::BottomDockWidgetArea, bottom_, tr("Details"), "bottom");
  bottom_dock_->setTitleBarWidget(new QWidget);
  // A click on a tab opens the panel, a click on the open one closes it.
  connect(bottom_->tabBar(), &QTabBar::tabBarClicked, this,
          [this](int tab) { open_bottom(!bottom_open_ || tab != bottom_->currentIndex()); });
  connect(bottom_, &QTabWidget::currentChanged, this, [this] {
    Q_EMIT panel_changed();
    follow_work();
  });
  add_command("View", tr("Open or close the panel below"), QKeySequence("Ctrl+Shift+B"),
              [this] { open_bottom(!bottom_open_); });
  add_command("View/Show", tr("Show log"), QKeySequence("Ctrl+Shift+L"), [this] {
    show_view(log_);
    focus(log_);
  });
  add_command("Help", tr("Keys"), QKeySequence::HelpContents, [this] { show_keys(); });
  add_command("Help", tr("Samples, and getting graphs out of PyTorch"), {},
              [this] { pages_->setCurrentWidget(empty_); });
  open_bottom(false);
  arrange_docks();
  default_layout_ = saveState();
}

QAction* MainWindow::add_command(const QString& path, const QString& text, const QKeySequence& shortcut,
                                 std::function<void()> run) {
  QMenu* target = nullptr;
  for (const QString& name : path.split('/')) {
    QMenu* inner =
        (target ? static_cast<QWidget*>(target) : menuBar())->findChild<QMenu*>(name, Qt::FindDirectChildrenOnly);
    if (!inner) {
      inner = target ? target->addMenu(name) : menuBar()->addMenu("&" + name);  // Alt and the first letter open it
      inner->setObjectName(name);
    }
    target = inner;
  }
  target->setToolTipsVisible(true);  // they say why an entry cannot be chosen
  auto* action = new QAction(text, target);
  connect(action, &QAction::triggered, this, std::move(run));
  const QString quit = tr("Quit");  // the last one
  if (!target->isEmpty() && target->actions().last()->text() == quit)
    target->insertAction(target->actions().last(), action);
  else
    target->addAction(action);
  action->setShortcut(shortcut);
  action->setShortcutContext(Qt::WindowShortcut);
  commands_.emplace_back(path.section('/', 0, 0), action);
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
  add_command("View/Theme", tr("Theme: as the system"), {}, [this] { set_theme_choice(ThemeChoice::System); });
  add_command("View/Theme", tr("Theme: light"), {}, [this] { set_theme_choice(ThemeChoice::Light); });
  add_command("View/Theme", tr("Theme: dark"), {}, [this] { set_theme_choice(ThemeChoice::Dark); });
  add_command("View", tr("Reset the layout"), {}, [this] { reset_layout(); });
  add_command("View", tr("Focus the picture"), QKeySequence("F6"), [this] { pages_->currentWidget()->setFocus(); });
}

void MainWindow::show_view(QWidget* view) {
  if (pages_->indexOf(view) >= 0) return pages_->setCurrentWidget(view);
  if (bottom_->indexOf(view) >= 0) {
    bottom_->setCurrentWidget(view);
    return open_bottom(true);
  }
  for (auto* dock : findChildren<QDockWidget*>())
    if (dock->widget() == view) {
      dock->show();
      dock->raise();
    }
}

bool MainWindow::in_front(QWidget* view) const {
  return pages_->currentWidget() == view || (bottom_open_ && bottom_->currentWidget() == view);
}

void MainWindow::set_breadcrumb(const QString& text) {
  breadcrumb_->setText(text);
  setWindowTitle(text.isEmpty() ? "Partita" : text + " - Partita");
}

void MainWindow::set_status(const QString& left, const QString& right) {
  status_left_->setText(left);
  status_right_->setText(right);
}

void MainWindow::set_environment(const Environment& environment) {
  environment_->setText(environment.text);
  environment_->setToolTip(environment.details);
}

void MainWindow::tell(const QString& what) {
  status_left_->setText(what);
  log(what);
}

void MainWindow::focus(QWidget* view) {
  const auto takes_keys = [](const QWidget* w) {
    return w->isVisible() && w->isEnabled() && (w->focusPolicy() & Qt::TabFocus || w->focusProxy());
  };
  QWidget* first = view;
  const QList<QWidget*> inside = view->findChildren<QWidget*>();
  if (const auto found = std::ranges::find_if(inside, takes_keys); !takes_keys(view) && found != inside.end())
    first = *found;
  first->setFocus(Qt::ShortcutFocusReason);
}

void MainWindow::log(const QString& line, bool error) {
  QString colour = (error ? theme_->bad : theme_->ink).name();
  log_->appendHtml(QString("<span style='color:%1'>%2</span>").arg(colour, line.toHtmlEscaped()));
  Q_EMIT logged(line);
}

void MainWindow::show_problem(const QString& text, const QString& details) {
  constexpr int kMostLines = 4;
  problems_ << text;
  problem_details_ << (details.isEmpty() ? text : details);
  QStringList lines = problems_.mid(0, kMostLines);
  if (problems_.size() > kMostLines) lines << tr("and %1 more").arg(problems_.size() - kMostLines);
  problem_text_->setText(lines.join('\n'));
  place_problem();
  Q_EMIT problem_shown(text);
  log(problem_details_.last(), true);
}

// Over the page, which must not move under the mouse, and at its other end where the mouse is.
void MainWindow::place_problem() {
  const QRect page = centralWidget()->rect();
  const int wanted = problem_->layout()->hasHeightForWidth() ? problem_->layout()->heightForWidth(page.width())
                                                             : problem_->sizeHint().height();
  const int height = std::min(wanted, page.height());
  if (problem_->isHidden()) {
    const int mouse = centralWidget()->mapFromGlobal(QCursor::pos()).y();
    problem_below_ = mouse < page.height() - height || mouse >= page.height();
  }
  problem_->setGeometry(0, problem_below_ ? page.height() - height : 0, page.width(), height);
  problem_->show();
  problem_->raise();
}

void MainWindow::clear_problems() {
  problems_.clear();
  problem_details_.clear();
  problem_->hide();
}

void MainWindow::set_recent(const QStringList& recent, const std::vector<Sample>& samples) {
  recent_button_->menu()->clear();
  for (const QString& path : recent)
    recent_button_->menu()->addAction(path, this, [this, path] { Q_EMIT open_asked(path); });
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

void MainWindow::closeEvent(QCloseEvent* event) {
  Q_EMIT closing();
  QSettings settings;
  settings.setValue("geometry", saveGeometry());
  settings.setValue("bottom", bottom_open_);
  layouts_[work_] = saveState();
  settings.setValue("layout", layouts_["reading"]);
  QVariantMap kept;
  for (const auto& [work, state] : layouts_) kept[work] = state;
  settings.setValue("layouts", kept);
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
  if (event->key() == Qt::Key_Escape) return problem_->isHidden() ? close_page() : clear_problems();
  if (event->key() == Qt::Key_Question) return show_keys();
  QMainWindow::keyPressEvent(event);
}

void MainWindow::show_keys() {
  QString html;
  auto section = [&](const QString& title, const QString& rows) {
    html += QString("<h4>%1</h4><table>%2</table>").arg(title.toHtmlEscaped(), rows);
  };
  auto row = [](const QString& keys, const QString& what) {
    return QString("<tr><td width='160'><b>%1</b></td><td>%2</td></tr>")
        .arg(keys.toHtmlEscaped(), what.toHtmlEscaped());
  };
  section(tr("In the picture"), row(tr("Arrows"), tr("along the links, and across the cut")) +
                                    row(tr("Tab, Shift+Tab"), tr("next and previous node in execution order")) +
                                    row(tr("Ctrl+Tab, Ctrl+Shift+Tab"), tr("leave the picture")) +
                                    row(tr("Enter, double click"), tr("fold or unfold the module")) +
                                    row(tr("S, R, U"), tr("save, recompute, let the partitioner choose")) +
                                    row(tr("F, Shift+F, Z"), tr("fit, show the whole, zoom to the chosen node")) +
                                    row(tr("+, -, wheel"), tr("zoom")) +
                                    row(tr("Shift+arrows, drag"), tr("move the picture")) + row("/", tr("search")) +
                                    row("Esc", tr("dismiss an error, close a page like Values")));
  QStringList menus;
  for (const auto& [menu, action] : commands_)
    if (!menus.contains(menu)) menus << menu;
  for (const QString& menu : menus) {
    QString rows;
    for (const auto& [of, action] : commands_)
      if (of == menu && !action->shortcut().isEmpty())
        rows += row(action->shortcut().toString(QKeySequence::NativeText), action->text());
    if (!rows.isEmpty()) section(menu, rows);
  }
  auto* dialog = new QDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setObjectName("keys");
  dialog->setWindowTitle(tr("Keys"));
  auto* page = new QTextBrowser;
  page->setHtml(html);
  page->setAccessibleName(tr("Keys"));
  page->document()->setDocumentMargin(16);
  plain_column(dialog)->addWidget(page);
  dialog->resize(520, std::min(640, height() - 40));
  dialog->open();
}

bool MainWindow::event(QEvent* event) {
  if (event->type() == QEvent::WindowActivate && std::exchange(fitting_, false)) shrink_to_screen();
  if (event->type() != QEvent::StatusTip) return QMainWindow::event(event);
  if (const QString what = static_cast<QStatusTipEvent*>(event)->tip(); !what.isEmpty()) tell(what);
  return true;  // menus send empty ones
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (watched == centralWidget() && event->type() == QEvent::Resize && !problem_->isHidden()) place_problem();
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

}  // namespace partita::views
