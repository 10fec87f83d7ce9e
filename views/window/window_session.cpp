// The one place where all views and all commands of the window meet.
#include "views/window/window_session.h"

#include <QApplication>
#include <QClipboard>
#include <QFile>
#include <QSettings>
#include <algorithm>

#include "views/look/format.h"
#include "views/look/inputs_box.h"
#include "views/session/kept_state.h"
#include "views/session/samples.h"

namespace partita::views {

Session::Session(WorkbenchTools tools, const QStringList& paths, const QString& graph_id)
    : Workbench(std::move(tools),
                [](JobTracker& jobs) -> std::unique_ptr<Window> { return std::make_unique<MainWindow>(jobs); }) {
  connect(&window(), &MainWindow::open_asked, &documents(), &Documents::open);
  connect(&window(), &MainWindow::closing, this, [this] {
    for (const auto& [key, document] : documents().all()) keep_state(*document);
  });
  connect(&window(), &MainWindow::search_changed, this, &Session::search);
  connect(&window(), &MainWindow::search_next, this, [this](bool backwards) {
    bool found = false;
    views().each([&](Controller& view) { found = found || view.find_next(backwards); });
  });
  connect(&jobs(), &JobTracker::ended, this, [this](const QString& name, double seconds) {
    window().log(name + ": " + seconds_text(seconds));
    show_environment();  // it may have started PyTorch
  });
  connect(&documents(), &Documents::loaded, this, &Session::remember);
  connect(&documents(), &Documents::failed, this, &Session::failed);
  connect(&drawing(), &Drawing::failed, this, &Session::failed);
  window().set_palette_source([this](const QString& typed) { return palette_entries(typed); });
  documents().want(graph_id);
  for (const QString& path : paths) documents().open(path);
  make_views();
  add_commands();
  refresh_recent();
  show_environment();
  if (const QStringList missing = missing_fonts(); !missing.isEmpty()) window().tell(missing.join("; "));
}

void Session::make_views() {
  for (const ViewRow& row : view_rows()) {
    std::unique_ptr<Controller> made = row.make(*this);
    if (!made) continue;
    Controller* view = made.get();
    window().add_view(row, view->widget());
    if (InputsBox* box = view->inputs())
      connect(box, &InputsBox::chosen, this, [this](const QString& path) { views().set_inputs(path); });
    // Not the page alone, which may show what belongs to a graph of before.
    if (*row.title != '\0' && (row.place == ViewPlace::Page || *row.key != '\0'))
      window().add_command("View/Show", tr("Show %1").arg(tr(row.title).toLower()), QKeySequence(row.key),
                           [this, view, page = row.place == ViewPlace::Page] {
                             if (page) return view->go();
                             view->raise();  // what takes time is started by the view's own command
                             window().focus(view->widget());
                           });
    views().add(row.name, std::move(made));
  }
  window().all_views_added();
}

void Session::add_commands() {
  window().add_command("View", tr("Back"), QKeySequence("Alt+Left"), [this] { selection().back(); });
  window().add_command("View", tr("Forward"), QKeySequence("Alt+Right"), [this] { selection().forward(); });
  window().add_command("File", tr("Read again"), QKeySequence("F5"), [this] {
    if (const Document* current = documents().current()) documents().reload(QString(current->path));
  });
  window().add_command("File", tr("Close"), QKeySequence::Close, [this] {
    if (const Document* current = documents().current()) documents().close_file(QString(current->path));
  });
  pins().add_commands(selection());
  window().add_command("Edit", tr("Copy as command line"), QKeySequence("Ctrl+Shift+C"), [this] {
    QApplication::clipboard()->setText(command_line());
    window().tell(tr("Copied: %1").arg(command_line()));
  });
  window().add_command("Edit", tr("Cancel all jobs"), QKeySequence("Ctrl+."), [this] { jobs().cancel_all(); });
}

void Session::show_environment() {
  if (tools().python) window().set_environment(tools().python());
}

void Session::search(const QString& needle) {
  std::optional<int> lines;
  views().each([&](Controller& view) {
    if (auto found = view.search(needle)) lines = found;
  });
  const Document* current = documents().current();
  if (needle.isEmpty() || (!lines && !current)) return;
  const auto notes =
      current ? std::ranges::count_if(
                    current->notes, [&](const auto& note) { return note.second.contains(needle, Qt::CaseInsensitive); })
              : 0;
  QString found = tr("%1 found").arg(count_text(lines.value_or(0), "line"));
  if (notes > 0) found += tr(", and in %1").arg(count_text(notes, "note"));
  if (lines || notes > 0) window().set_status(found, {});
}

std::vector<PaletteEntry> Session::palette_entries(const QString& typed) {
  std::vector<PaletteEntry> entries;
  const Document* current = documents().current();
  if (current)
    for (const auto& [node, note] : current->notes)
      if (QString name = text(node); !note.isEmpty() && fuzzy_score(typed, note) >= 0)
        entries.push_back({note, name, [this, name] { selection().select_node(name); }});
  if (current && current->graph)
    for (const Node* node : *current->graph) {
      QString name = text(node->name());
      if (fuzzy_score(typed, name) < 0) continue;
      entries.push_back({name, text(shape_text(node->meta)), [this, name] { selection().select_node(name); }});
      if (entries.size() >= 300) break;
    }
  for (const auto& [key, document] : documents().all())
    if (fuzzy_score(typed, document->title) >= 0)
      entries.push_back({document->title, documents().place_of(*document), [this, key = key] { screen().show(key); }});
  return entries;
}

void Session::remember(const QString& path) {
  QSettings settings;
  QStringList recent = settings.value("recent").toStringList();
  recent.removeAll(path);
  recent.prepend(path);
  settings.setValue("recent", recent.mid(0, 12));
  refresh_recent();
}

void Session::refresh_recent() {
  QStringList recent;
  for (const QString& path : QSettings().value("recent").toStringList())
    if (QFile::exists(path)) recent << path;
  window().set_recent(recent, samples());
}

QString Session::command_line() const {
  const Document* current = documents().current();
  if (!current) return "partita open";
  QStringList command, files;
  for (const bool of_page : {true, false})  // the page is looked at; the panel below it may show what was done before
    views().each([&](const Controller& view) {
      if (!command.isEmpty() || (view.widget() == window().page()) != of_page) return;
      command = view.command();
      files = view.command_files();
    });
  QStringList words{"partita", command.isEmpty() ? "open" : command.takeFirst()};
  for (const QString& file : files) words << shell_word(file);
  if (files.isEmpty()) words << shell_word(current->path);
  if (files.isEmpty() && !current->id.isEmpty()) words << "--graph" << shell_word(current->id);
  return (words + command).join(' ') + text(config_words(config(), ConfigPart::Differs));
}

}  // namespace partita::views
