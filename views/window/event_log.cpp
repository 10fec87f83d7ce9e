// Writes what workbench, window and jobs signal; stalls, which a timer of 10 ms finds, without the wait for a
// processor; and on a key all visible widgets with their places.
#include "views/window/event_log.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QJsonArray>
#include <QJsonDocument>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <QTabBar>
#include <ctime>
#include <fstream>

#include "views/graph/graph_controller.h"
#include "views/look/format.h"
#include "views/window/window_session.h"

namespace partita::views {
namespace {

constexpr int kTurnMs = 10;
constexpr double kStallMs = 100;

double now_ms(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// This thread's time in the run queue: a busy machine is not a blocked window.
double waited_for_processor_ms() {
  double ran_ns = 0, waited_ns = 0;
  std::ifstream("/proc/thread-self/schedstat") >> ran_ns >> waited_ns;
  return waited_ns / 1e6;
}

QJsonArray place(const QWidget& widget, const QRect& part) {
  const QPoint at = widget.mapToGlobal(part.topLeft());
  return {at.x(), at.y(), part.width(), part.height()};
}

/// What can be seen of a window, as objects with kind, name and place.
class SeenWidgets {
 public:
  QJsonArray items;

  void add(const QWidget& widget) {
    if (!widget.isVisible() || widget.size().isEmpty()) return;
    if (auto* view = qobject_cast<const QAbstractItemView*>(&widget)) return add_rows(*view);
    if (auto* graph = dynamic_cast<const GraphView*>(&widget)) {
      item(widget, "graph", graph->accessibleName(), widget.rect());
      for (const auto& [name, box] : graph->cards_in_view()) item(widget, "card", name, box.toAlignedRect());
      return;
    }
    if (auto* tabs = qobject_cast<const QTabBar*>(&widget))
      for (int i = 0; i < tabs->count(); ++i) item(widget, "tab", tabs->tabText(i), tabs->tabRect(i));
    if (auto* menu = qobject_cast<const QMenu*>(&widget))
      for (QAction* action : menu->actions())
        if (!action->isSeparator()) item(widget, "menu", action->text(), menu->actionGeometry(action));
    if (auto* bar = qobject_cast<const QMenuBar*>(&widget))
      for (QAction* action : bar->actions())
        item(widget, "menu", action->text().remove('&'), bar->actionGeometry(action));
    if (auto* button = qobject_cast<const QAbstractButton*>(&widget))
      item(widget, "button", button->text().isEmpty() ? button->accessibleName() : button->text(), widget.rect());
    if (auto* label = qobject_cast<const QLabel*>(&widget)) item(widget, "label", label->text(), widget.rect());
    if (auto* field = qobject_cast<const QLineEdit*>(&widget)) item(widget, "field", field->text(), widget.rect());
    if (auto* text = qobject_cast<const QPlainTextEdit*>(&widget))
      item(widget, "text", text->toPlainText().left(kMostText), widget.rect());
    for (const QObject* child : widget.children())
      if (auto* inner = qobject_cast<const QWidget*>(child); inner && !inner->isWindow()) add(*inner);
  }

 private:
  static constexpr int kMostText = 2000;

  void item(const QWidget& widget, const char* kind, const QString& name, const QRect& part) {
    items.append(QJsonObject{{"kind", kind},
                             {"name", name},
                             {"of", widget.accessibleName()},
                             {"enabled", widget.isEnabled()},
                             {"focus", widget.hasFocus()},
                             {"place", place(widget, part)}});
  }

  void add_rows(const QAbstractItemView& view) {
    item(view, "rows", view.accessibleName(), view.rect());
    const QWidget& port = *view.viewport();
    constexpr int kAtLeast = 8;  // pixels, for rows of no height
    for (int y = 2; y < port.height();) {
      const QModelIndex index = view.indexAt({port.width() / 4, y});
      if (!index.isValid()) break;
      QStringList cells;
      for (int column = 0; column < view.model()->columnCount(index.parent()); ++column)
        cells << index.siblingAtColumn(column).data().toString();
      const QRect row = view.visualRect(index);
      item(port, "row", cells.join('\t'), row);
      y = std::max(row.bottom() + 2, y + kAtLeast);
    }
  }
};

}  // namespace

Result<std::unique_ptr<EventLog>> EventLog::open(const QString& path) {
  TRY(OutputLog file, OutputLog::open(path.toStdString()));
  return std::make_unique<EventLog>(std::move(file));
}

void EventLog::watch(Session& bench) {
  bench_ = &bench;
  connect(&bench.screen(), &Screen::shown, this, [this](const QString& key) { write("shown", {{"key", key}}); });
  connect(&bench.window(), &MainWindow::logged, this,
          [this](const QString& line) { write("logged", {{"text", line}}); });
  connect(&bench.window(), &MainWindow::problem_shown, this,
          [this](const QString& text) { write("problem", {{"text", text}}); });
  connect(&bench.window(), &MainWindow::page_changed, this,
          [this] { write("page", {{"name", bench_->window().page()->accessibleName()}}); });
  connect(&bench.selection(), &Selection::changed, this,
          [this](const Spot& spot) { write("selected", {{"key", spot.document}, {"node", spot.node}}); });
  connect(&bench.jobs(), &JobTracker::changed, this, &EventLog::refresh_jobs);
  connect(&bench.jobs(), &JobTracker::ended, this,
          [this](const QString& name, double seconds) { write("done", {{"name", name}, {"seconds", seconds}}); });
  connect(&bench.jobs(), &JobTracker::finished, this, [this](int id) {
    refresh_jobs();
    write("gone", {{"id", id}, {"name", jobs_[id]}, {"running", static_cast<int>(bench_->jobs().rows().size())}});
  });
  connect(qApp, &QApplication::aboutToQuit, this, [this] { write("quit"); });
  begin_turn();
  startTimer(kTurnMs, Qt::PreciseTimer);
}

void EventLog::begin_turn() {
  turn_.start();
  waited_ms_ = waited_for_processor_ms();
  worked_ms_ = now_ms(CLOCK_THREAD_CPUTIME_ID);
  slowest_ms_ = 0;
}

void EventLog::refresh_jobs() {
  for (const JobRow& row : bench_->jobs().rows())
    if (jobs_.try_emplace(row.id, row.name).second) write("started", {{"id", row.id}, {"name", row.name}});
}

void EventLog::write(const QString& event, QJsonObject fields) {
  fields["event"] = event;
  fields["at"] = now_ms();
  if (!written_) return;
  written_ = file_.write((QJsonDocument(fields).toJson(QJsonDocument::Compact) + "\n").toStdString());
  if (!written_ && bench_) bench_->window().report(written_.error());
}

void EventLog::timerEvent(QTimerEvent*) {
  tell_stall();
  begin_turn();
}

void EventLog::tell_stall() {
  const double ms = static_cast<double>(turn_.nsecsElapsed()) / 1e6 - (waited_for_processor_ms() - waited_ms_);
  const double cpu_ms = now_ms(CLOCK_THREAD_CPUTIME_ID) - worked_ms_;
  if (ms > kStallMs) write("stall", {{"ms", ms}, {"cpu_ms", cpu_ms}, {"in", slowest_}, {"slowest_ms", slowest_ms_}});
}

void EventLog::handled(const QObject* receiver, const QEvent& event, double milliseconds) {
  if (milliseconds > slowest_ms_) {
    slowest_ms_ = milliseconds;
    slowest_ = QString("%1 %2").arg(receiver->metaObject()->className()).arg(static_cast<int>(event.type()));
  }
  // The update of the window is over once its pixels went to the display.
  if (event.type() != QEvent::UpdateRequest || !bench_ || receiver != &bench_->window()) return;
  const Document* shown = bench_->documents().current();
  if (!shown || !shown->code || shown->key == painted_) return;
  painted_ = shown->key;
  const GraphView* graph = bench_->views().get<GraphController>().view();
  write("painted", {{"key", painted_},
                    {"picture", graph->scene() != nullptr && graph->isVisible()},
                    {"cards", static_cast<int>(graph->cards_in_view().size())}});
}

bool EventLog::takes(const QEvent& event) {
  if (event.type() != QEvent::KeyPress && event.type() != QEvent::ShortcutOverride) return false;
  const auto& key = static_cast<const QKeyEvent&>(event);
  if (key.key() == Qt::Key_Alt && QApplication::activePopupWidget()) return true;  // would close the menu to be seen
  if (key.key() != Qt::Key_D || key.modifiers() != (Qt::ControlModifier | Qt::AltModifier)) return false;
  if (event.type() == QEvent::KeyPress) write_screen();
  return event.type() == QEvent::KeyPress;
}

void EventLog::write_screen() {
  tell_stall();
  SeenWidgets seen;
  for (const QWidget* top : QApplication::topLevelWidgets()) seen.add(*top);
  const MainWindow& window = bench_->window();
  const QStringList jobs = texts(bench_->jobs().rows(), &JobRow::name);
  const QWidget* focus = QApplication::focusWidget();
  write("screen", {{"title", window.windowTitle()},
                   {"place", place(window, window.rect())},
                   {"dark", window.theme().dark},
                   {"key", bench_->documents().current() ? bench_->documents().current()->key : QString()},
                   {"node", bench_->selection().spot().node},
                   {"page", window.page()->accessibleName()},
                   {"focus", focus ? focus->accessibleName() : QString()},
                   {"jobs", QJsonArray::fromStringList(jobs)},
                   {"items", seen.items}});
  begin_turn();
}

bool WatchedApplication::notify(QObject* receiver, QEvent* event) {
  if (!log_) return QApplication::notify(receiver, event);
  if (log_->takes(*event)) return true;
  const QEvent::Type type = event->type();
  const QPointer<QObject> alive(receiver);  // a handler may delete it
  const double begun = now_ms();
  const bool accepted = QApplication::notify(receiver, event);
  if (alive && type != QEvent::DeferredDelete) log_->handled(receiver, *event, now_ms() - begun);
  return accepted;
}

}  // namespace partita::views
