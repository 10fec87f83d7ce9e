// Loads files and draws documents in jobs, puts the result on the screen and tells all controllers. Also pins with
// undo, folds, notes on their way to the store, and what is shown while passes are stepped through.
#include "views/window/workbench.h"

#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QFileInfo>
#include <QSettings>
#include <algorithm>

#include "core/store/store.h"
#include "views/graph/paint.h"
#include "views/graph/sizes.h"
#include "views/look/format.h"
#include "views/look/inputs_box.h"
#include "views/session/kept_state.h"
#include "views/session/samples.h"

namespace partita::views {
namespace {

const QString kStep = QStringLiteral("  ›  ");  // between the parts of a place

/// The graph that a verb would take, else the first graph, else what went wrong, else the first text.
std::string first_shown(const Loaded& loaded, const std::string& wanted) {
  if (!wanted.empty() && loaded.find(wanted)) return wanted;
  if (auto picked = loaded.pick({})) return (*picked)->id;
  for (const Artefact& artefact : loaded.artefacts)
    if (artefact.is_graph()) return artefact.id;
  for (const Artefact& artefact : loaded.artefacts)
    if (artefact.title.find("error") != std::string::npos) return artefact.id;
  return loaded.artefacts.empty() ? std::string() : loaded.artefacts.front().id;
}

}  // namespace

Workbench::Workbench(WorkbenchTools tools, const QStringList& paths, const QString& graph_id)
    : tools_(std::move(tools)), window_(jobs_), wanted_id_(graph_id) {
  text_width_ = measured_text_width(card_title_font(), card_detail_font());
  connect(&window_, &MainWindow::open_asked, this, &Workbench::open);
  connect(&window_, &MainWindow::closing, this, [this] {
    for (const auto& [key, document] : documents_) keep_state(*document);
  });
  connect(&window_, &MainWindow::search_changed, this, &Workbench::search);
  connect(&window_, &MainWindow::search_next, this, [this](bool backwards) {
    std::ranges::any_of(views_, [&](const Made& view) { return view.controller->find_next(backwards); });
  });
  connect(&selection_, &Selection::changed, this, &Workbench::select_in_views);
  connect(&jobs_, &JobTracker::ended, this,
          [this](const QString& name, double seconds) { window_.log(name + ": " + seconds_text(seconds)); });
  connect(&jobs_, &JobTracker::finished, this, [this](int id) {
    loads_.erase(id);
    draw_ended(id);
  });
  window_.set_palette_source([this](const QString& typed) { return palette_entries(typed); });
  for (const QString& path : paths) open(path);
  make_views();
  add_commands();
  refresh_recent();
  if (const QStringList missing = missing_fonts(); !missing.isEmpty()) window_.tell(missing.join("; "));
}

Workbench::~Workbench() = default;

void Workbench::make_views() {
  for (const ViewRow& row : view_rows()) {
    std::unique_ptr<Controller> made = row.make(*this);
    if (!made) continue;
    Controller* view = made.get();
    window_.add_view(row, view->widget());
    if (InputsBox* box = view->inputs()) connect(box, &InputsBox::chosen, this, &Workbench::set_inputs);
    // Not the page alone, which may show what belongs to a graph of before.
    if (*row.title != '\0' && (row.place == ViewPlace::Page || *row.key != '\0'))
      window_.add_command("View/Show", tr("Show %1").arg(tr(row.title).toLower()), QKeySequence(row.key),
                          [this, view, page = row.place == ViewPlace::Page] {
                            if (page) return view->go();
                            view->raise();  // what takes time is started by the view's own command
                            window_.focus(view->widget());
                          });
    views_.push_back({&row, std::move(made)});
  }
  window_.all_views_added();
}

void Workbench::add_commands() {
  window_.add_command("View", tr("Back"), QKeySequence("Alt+Left"), [this] { selection_.back(); });
  window_.add_command("View", tr("Forward"), QKeySequence("Alt+Right"), [this] { selection_.forward(); });
  window_.add_command("File", tr("Close"), QKeySequence::Close, [this] {
    if (current_) close_file(QString(current_->path));
  });
  const auto pin_chosen = [this](Pin to) { return [this, to] { pin(selection_.spot().node, to); }; };
  window_.add_command("Graph", tr("Save the value for the backward"), QKeySequence("S"), pin_chosen(Pin::Save));
  window_.add_command("Graph", tr("Recompute the value in the backward"), QKeySequence("R"),
                      pin_chosen(Pin::Recompute));
  window_.add_command("Graph", tr("Let the partitioner choose the value"), QKeySequence("U"), pin_chosen(Pin::None));
  undo_ = window_.add_command("Edit", tr("Undo the last pin"), QKeySequence::Undo, [this] { undo_pin(); });
  redo_ = window_.add_command("Edit", tr("Redo the pin"), QKeySequence("Ctrl+Shift+Z"), [this] { redo_pin(); });
  refresh_undo();
  window_.add_command("Edit", tr("Copy as command line"), QKeySequence("Ctrl+Shift+C"), [this] {
    QApplication::clipboard()->setText(command_line());
    window_.tell(tr("Copied: %1").arg(command_line()));
  });
  window_.add_command("Edit", tr("Cancel all jobs"), QKeySequence("Ctrl+."), [this] { jobs_.cancel_all(); });
}

Document* Workbench::document(const QString& key) {
  auto found = documents_.find(key);
  return found == documents_.end() ? nullptr : found->second.get();
}

void Workbench::search(const QString& needle) {
  std::optional<int> lines;
  for_each_view([&](Controller& view) {
    if (auto found = view.search(needle)) lines = found;
  });
  if (needle.isEmpty() || (!lines && !current_)) return;
  const auto notes = current_ ? std::ranges::count_if(
                                    current_->notes,
                                    [&](const auto& note) { return note.second.contains(needle, Qt::CaseInsensitive); })
                              : 0;
  QString found = tr("%1 found").arg(count_text(lines.value_or(0), "line"));
  if (notes > 0) found += tr(", and in %1").arg(count_text(notes, "note"));
  if (lines || notes > 0) window_.set_status(found, {});
}

std::vector<PaletteEntry> Workbench::palette_entries(const QString& typed) {
  std::vector<PaletteEntry> entries;
  if (current_)
    for (const auto& [node, note] : current_->notes)
      if (QString name = text(node); !note.isEmpty() && fuzzy_score(typed, note) >= 0)
        entries.push_back({note, name, [this, name] { selection_.select_node(name); }});
  if (current_ && current_->graph)
    for (const Node* node : *current_->graph) {
      QString name = text(node->name());
      if (fuzzy_score(typed, name) < 0) continue;
      entries.push_back({name, text(shape_text(node->meta)), [this, name] { selection_.select_node(name); }});
      if (entries.size() >= 300) break;
    }
  for (const auto& [key, document] : documents_)
    if (fuzzy_score(typed, document->title) >= 0)
      entries.push_back({document->title, place_of(*document), [this, key = key] { show(key); }});
  return entries;
}

void Workbench::report(const Diagnostic& problem) {
  if (problem.fault == Fault::Cancelled) return;
  QStringList details{text(problem.line())};
  for (const std::string& note : problem.notes) details << "  " + text(note);
  details << text(problem.code);
  window_.show_problem(text(problem.line()), details.join('\n'));
}

void Workbench::remember(const QString& path) {
  QSettings settings;
  QStringList recent = settings.value("recent").toStringList();
  recent.removeAll(path);
  recent.prepend(path);
  settings.setValue("recent", recent.mid(0, 12));
  refresh_recent();
}

void Workbench::refresh_recent() {
  QStringList recent;
  for (const QString& path : QSettings().value("recent").toStringList())
    if (QFile::exists(path)) recent << path;
  window_.set_recent(recent, samples());
}

QString Workbench::command_line() const {
  if (!current_) return "partita open";
  QStringList command, files;
  for (const bool of_page : {true, false})  // the page is looked at; the panel below it may show what was done before
    for (const Made& view : views_) {
      if (!command.isEmpty() || (view.controller->widget() == window_.page()) != of_page) continue;
      command = view.controller->command();
      files = view.controller->command_files();
    }
  QStringList words{"partita", command.isEmpty() ? "open" : command.takeFirst()};
  for (const QString& file : files) words << shell_word(file);
  if (files.isEmpty()) words << shell_word(current_->path);
  if (files.isEmpty() && !current_->id.isEmpty()) words << "--graph" << shell_word(current_->id);
  return (words + command).join(' ') + text(config_words(config(), ConfigPart::Differs));
}

void Workbench::open(const QString& path) {
  const Result<QString> on_disk = path_on_disk(path);
  if (!on_disk) return report(on_disk.error());
  QString full = QDir::cleanPath(QFileInfo(*on_disk).absoluteFilePath());
  if (loads_.empty()) window_.clear_problems();
  loads_.insert(jobs_.start<Opened>(
      tr("Load %1").arg(file_title(full)), "load:" + full, this,
      [full, wanted = wanted_id_.toStdString()](const Progress& progress) -> Result<Opened> {
        Opened opened;
        TRY(opened.loaded, load(full.toStdString(), &progress));
        opened.first = first_shown(opened.loaded, wanted);
        const Artefact* first = opened.loaded.find(opened.first);
        if (!first || !first->is_graph()) return opened;
        Document document;
        document.artefact = *first;
        document.kind = first->kind;
        // What keeps it from being read is said when it is drawn.
        if (auto rendering = read(document, progress))
          opened.read = std::make_shared<const Rendering>(*std::move(rendering));
        return opened;
      },
      [this, full](Result<Opened> result) {
        if (!result) {
          report(result.error());
          Q_EMIT failed(result.error());
          return;
        }
        remember(full);
        add_loaded(full, *std::move(result));
      }));
}

void Workbench::close_file(const QString& path) {
  const bool shown = current_ && current_->path == path;
  jobs_.cancel_of(path);
  for (const auto& [key, document] : documents_)
    if (document->path == path) keep_state(*document);
  tree_.remove_file(path);
  name_files();
  if (shown) current_ = nullptr;
  std::erase_if(documents_, [&](const auto& document) { return document.second->path == path; });
  Q_EMIT closed(path);
  if (!shown) return;
  if (!documents_.empty()) return show(documents_.begin()->first);
  show_nothing();
}

void Workbench::show_nothing() {
  current_ = nullptr;
  step_.reset();
  selection_.select({});
  for_each_view([](Controller& view) { view.wait_for({}); });
  for (const Offer& offer : offers_) offer.action->setEnabled(false);
  window_.set_breadcrumb({});
  window_.set_status({}, {});
  window_.show_view(window_.empty_page());
}

Document& Workbench::add_document(std::unique_ptr<Document> document, const QStringList& groups, const QString& detail,
                                  const QString& parent_key, const QString& heading) {
  Document& added = *document;
  added.group = groups.join(kStep);
  if (const Document* parent = this->document(parent_key))
    added.group = parent->group.isEmpty() ? parent->title : parent->group + kStep + parent->title;
  tree_.add_document(added.path, groups, added.key, added.title, detail, parent_key, heading);
  documents_[added.key] = std::move(document);
  return added;
}

void Workbench::add_loaded(const QString& path, Opened opened) {
  const Loaded& loaded = opened.loaded;
  QModelIndex file = tree_.add_file(path, title_of(path));
  name_files();
  // Graphs come first. The other texts that a log has about a compilation follow under a heading.
  bool has_graphs = std::ranges::any_of(loaded.artefacts, &Artefact::is_graph);
  auto add = [&](const Artefact& artefact) {
    auto document = std::make_unique<Document>();
    document->path = path;
    document->id = text(artefact.id);
    document->key = path + "#" + document->id;
    if (documents_.contains(document->key)) return;
    document->title = text(artefact.title.empty() ? artefact.id : artefact.title);
    document->kind = artefact.kind;
    const QStringList groups = groups_of(artefact, path);
    for (const QString& named : {text(artefact.group), QFileInfo(path).fileName()})
      if (!named.isEmpty() && document->title.endsWith(" of " + named)) document->title.chop(named.size() + 4);
    QString kind = text(kind_name(artefact.kind));
    document->artefact = artefact;
    bool below_heading = has_graphs && !artefact.is_graph();
    add_document(std::move(document), groups, below_heading ? QString() : kind, {},
                 below_heading ? tr("texts") : QString());
  };
  for (const Artefact& artefact : loaded.artefacts)
    if (artefact.is_graph()) add(artefact);
  Q_EMIT graphs_added(file);
  for (const Artefact& artefact : loaded.artefacts)
    if (!artefact.is_graph()) add(artefact);
  for (const Diagnostic& warning : loaded.warnings) window_.log(text(warning.line()), true);
  const auto is_note = [](const Diagnostic& d) { return d.severity == Severity::Note; };
  const auto notes = static_cast<int>(std::ranges::count_if(loaded.warnings, is_note));
  const int unread = static_cast<int>(loaded.warnings.size()) - notes;
  if (unread > 0)
    window_.show_problem(
        tr("%1: %2 could not be read; the rest is open").arg(file_title(path), count_text(unread, "part")),
        text(std::ranges::find_if_not(loaded.warnings, is_note)->line()));
  else if (notes > 0)
    window_.show_problem(
        tr("%1: all was read; %2 not as recorded in it").arg(file_title(path), count_text(notes, "part")),
        text(loaded.warnings.front().line()));
  const QString first = path + "#" + text(opened.first);
  if (text(opened.first) == wanted_id_) wanted_id_.clear();
  if (Document* document = this->document(first); document && !document->code) document->read = std::move(opened.read);
  Q_EMIT this->loaded(path);
  if (!loaded.artefacts.empty()) show(first);
}

bool Workbench::show_view(const QString& name) {
  auto found = std::ranges::find_if(views_, [&](const Made& view) { return name == view.row->name; });
  if (found == views_.end()) return false;
  found->controller->show();
  return true;
}

void Workbench::show(const QString& key) {
  Document* chosen = document(key);
  if (!chosen) return;
  current_ = chosen;
  step_.reset();
  if (chosen->code) return put_on_screen(*chosen);
  restore_state(*chosen);
  const bool nothing_shown = window_.page() == window_.empty_page();
  window_.set_breadcrumb(place_of(*chosen));
  window_.set_status({}, {});
  for_each_view([&](Controller& view) { view.wait_for(*chosen); });
  if (nothing_shown) window_.page()->setFocus();
  render(*chosen);
}

// The page without what frames a picture. A window that was never shown has the size of its first layout only then.
QSizeF Workbench::room_for_pictures() const {
  constexpr QSizeF kFrame(4, 52), kUsual(616, 652);
  return window_.isVisible() ? QSizeF(window_.page()->parentWidget()->size()) - kFrame : kUsual;
}

void Workbench::render(Document& document, bool new_layout) {
  // A copy: the document may change while the job works.
  auto copy = std::make_shared<Document>(document);
  if (new_layout) copy->scene.reset();
  QString key = document.key;
  const int job = jobs_.start<Rendering>(
      tr("Draw %1").arg(place_of(document)), "draw:" + key, this,
      [copy, width = text_width_, room = room_for_pictures()](const Progress& progress) {
        return views::render(*copy, width, room, progress);
      },
      [this, key](Result<Rendering> result) {
        std::erase_if(draws_, [&](const auto& draw) { return draw.second == key; });
        if (result) return set_rendering(key, *std::move(result));
        Document* failed_one = this->document(key);
        if (failed_one && failed_one->code && result.error().code == "partition.pin" && !pinned_.isEmpty()) {
          pinned_.clear();
          back_to_drawn(key);
          return window_.tell(text(result.error().message));
        }
        if (failed_one && failed_one->code) {
          back_to_drawn(key);
        } else if (failed_one && result.error().code == "partition.pin") {  // kept from when the file was another
          failed_one->pins.clear();
          render(*failed_one);
        }
        report(result.error());
        Q_EMIT failed(result.error());
      });
  draws_[job] = key;
}

// A drawing that was cancelled leaves what was there before.
void Workbench::draw_ended(int job) {
  const auto draw = draws_.find(job);
  if (draw == draws_.end()) return;
  const QString key = draw->second;
  draws_.erase(draw);
  if (std::ranges::find(draws_, key, &decltype(draws_)::value_type::second) == draws_.end()) back_to_drawn(key);
}

void Workbench::back_to_drawn(const QString& key) {
  Document* of = document(key);
  if (!of) return;
  if (of->code) static_cast<Choices&>(*of) = of->drawn;
  if (of != current_) return;
  if (of->code) return put_on_screen(*of);
  if (document(shown_)) return show(shown_);
  show_nothing();
}

void Workbench::set_rendering(const QString& key, Rendering rendering) {
  Document* drawn = this->document(key);
  if (!drawn) return;
  Document& document = *drawn;
  if (document.cut && rendering.cut) document.bytes_before = document.cut->activation_bytes;
  document.graph = std::move(rendering.graph);
  document.code = std::move(rendering.code);
  document.scene = std::move(rendering.scene);
  document.cut = std::move(rendering.cut);
  document.folded = std::move(rendering.folded);
  document.folding = Folding::Asked;
  document.drawn = document;
  document.read.reset();
  if (rendering.cut_problem) window_.log(text(rendering.cut_problem->line()), true);
  if (current_ == &document) {
    put_on_screen(document);
    tell_pin(document);
  }
  if (!rendering.graph_problem) return;
  report(*rendering.graph_problem);
  Q_EMIT failed(*rendering.graph_problem);
}

// A pin that changes nothing would look like a key that was not heard.
void Workbench::tell_pin(const Document& document) {
  const std::string node = std::exchange(pinned_, {}).toStdString();
  const auto pin = document.pins.find(node);
  if (!document.cut || pin == document.pins.end()) return;
  const bool saved = std::ranges::any_of(document.cut->saved, [&](const SavedValue& v) { return v.name == node; });
  const bool again = std::ranges::find(document.cut->recomputed, node) != document.cut->recomputed.end();
  if (pin->second == Pin::Save ? saved : again) return;
  window_.tell(tr("The pin of %1 changes nothing: the backward does not need this value").arg(text(node)));
}

QString Workbench::title_of(const QString& path) const {
  constexpr int kMostFolders = 16;
  QStringList others = tree_.paths();
  others.removeAll(path);
  for (int folders = 1;; ++folders) {
    const QString title = file_title(path, folders);
    const auto equal = [&](const QString& other) { return file_title(other, folders) == title; };
    if (folders == kMostFolders || std::ranges::none_of(others, equal)) return title;
  }
}

void Workbench::name_files() {
  for (const QString& path : tree_.paths()) tree_.rename_file(path, title_of(path));
}

QString Workbench::place_of(const Document& document) const {
  QStringList steps{title_of(document.path), document.group, document.title};
  steps.removeAll({});
  return steps.join(kStep);
}

void Workbench::show_step(const QString& step, std::shared_ptr<const Graph> graph, Facts facts) {
  auto shown = std::make_unique<Document>();
  shown->path = current_->path;
  shown->title = current_->title + kStep + step;
  shown->kind = current_->kind;
  shown->notes = current_->notes;
  shown->graph = std::move(graph);
  shown->facts = std::move(facts);
  step_ = std::move(shown);
  window_.set_breadcrumb(place_of(*current_) + kStep + step);
  for_each_view([&](Controller& view) { view.set_step(*step_); });
  select_in_views(selection_.spot());
}

void Workbench::offer(QAction* action, const QString& text, std::function<bool(const Document&)> fits) {
  action->setEnabled(false);
  window_.add_tool(action, text);
  offers_.push_back({action, std::move(fits)});
}

void Workbench::put_on_screen(Document& document) {
  shown_ = document.key;
  step_.reset();
  window_.set_breadcrumb(place_of(document));
  for (const Offer& offer : offers_) offer.action->setEnabled(offer.fits(document));
  refresh_undo();
  if (document.scene && window_.page() == window_.empty_page()) show_view("graph");
  for_each_view([&](Controller& view) { view.set_document(document); });
  if (selection_.spot().document != document.key)
    selection_.select({document.key, document.graph && document.graph->find(document.chosen.toStdString())
                                         ? document.chosen
                                         : QString()});
  else
    select_in_views(selection_.spot());
  // An io.safetensors file beside an archive holds the inputs of its program, and of the joint graph made of it.
  QString io = QFileInfo(document.path).dir().filePath("io.safetensors");
  set_inputs(document.artefact.program && QFileInfo::exists(io) ? io : QString());
  show_status(document);
  Q_EMIT shown(document.key);
}

void Workbench::facts_changed(const Document& document) {
  if (current_ == &document) for_each_view([&](Controller& view) { view.facts_changed(document); });
}

void Workbench::set_inputs(const QString& path) {
  inputs_ = path;
  for_each_view([&](Controller& view) {
    if (InputsBox* box = view.inputs()) box->set_path(path);
  });
}

void Workbench::show_status(const Document& document) {
  if (!document.cut) {
    std::int64_t nodes = document.graph ? static_cast<std::int64_t>(document.graph->size()) : 0;
    int lines = document.code ? document.code->line_count() : 0;
    return window_.set_status(document.graph ? count_text(nodes, "node") : count_text(lines, "line"), {});
  }
  const CutSummary& cut = *document.cut;
  const UnknownBytes& unknown = document.scene->picture.unknown;
  QString left =
      tr("%1 saved, %2; %3 recomputed").arg(unknown.values).arg(size_text(unknown.saved)).arg(cut.recomputed.size());
  if (unknown.of.empty() && document.bytes_before && *document.bytes_before != cut.activation_bytes) {
    std::int64_t delta = cut.activation_bytes - *document.bytes_before;
    left += tr(" (%1%2 by the last change)").arg(delta > 0 ? "+" : "").arg(bytes_text(delta));
  }
  window_.set_status(left, kept_inputs_text(unknown));
}

void Workbench::select_in_views(const Spot& spot) {
  if (current_ == nullptr || spot.document != current_->key) return show(spot.document);
  current_->chosen = spot.node;
  for_each_view([&](Controller& view) { view.select(spot.node); });
}

void Workbench::pin(const QString& node, Pin pin) {
  if (!current_) return;
  if (step_) return window_.tell(tr("This is the graph after a pass; pins are of the graph itself (Ctrl+G)"));
  if (const QString why = why_not_pinned(*current_, node, pin); !why.isEmpty()) return window_.tell(why);
  Pins pins = current_->pins;
  if (pin == Pin::None) {
    pins.erase(node.toStdString());
  } else {
    pins[node.toStdString()] = pin;
  }
  current_->earlier_pins.push_back(current_->pins);
  current_->undone_pins.clear();
  pinned_ = node;
  change_pins(std::move(pins));
}

void Workbench::undo_pin() {
  if (!current_ || current_->earlier_pins.empty()) return;
  current_->undone_pins.push_back(current_->pins);
  Pins pins = std::move(current_->earlier_pins.back());
  current_->earlier_pins.pop_back();
  change_pins(std::move(pins));
}

void Workbench::redo_pin() {
  if (!current_ || current_->undone_pins.empty()) return;
  current_->earlier_pins.push_back(current_->pins);
  Pins pins = std::move(current_->undone_pins.back());
  current_->undone_pins.pop_back();
  change_pins(std::move(pins));
}

void Workbench::change_pins(Pins pins) {
  current_->pins = std::move(pins);
  refresh_undo();
  render(*current_);
}

void Workbench::refresh_undo() {
  undo_->setEnabled(current_ && !current_->earlier_pins.empty());
  redo_->setEnabled(current_ && !current_->undone_pins.empty());
}

void Workbench::set_note(const QString& node, const std::optional<QString>& note) {
  if (!current_graph() || !current_->graph->find(node.toStdString())) return;
  const std::string name = node.toStdString();
  if (note) {
    current_->notes[name] = *note;
  } else if (current_->notes.erase(name) == 0) {
    return;
  }
  for_each_view([&](Controller& view) { view.facts_changed(*current_); });
  // Jobs may overtake one another: each writes all that was asked for so far, in order.
  {
    const std::lock_guard lock(note_writes_->mutex);
    note_writes_->waiting.push_back({stored_path(current_->path.toStdString()), current_->graph_id().toStdString(),
                                     name, note ? std::optional(note->toStdString()) : std::nullopt});
  }
  jobs_.start<bool>(
      tr("Keep the note at %1").arg(node), {}, this,
      [file = tools_.store_file, writes = note_writes_](const Progress&) -> Result<bool> {
        if (file.empty()) return input_error("notes.store", "there is no store, so that notes end with the window");
        TRY(StoreFile store, StoreFile::open(file));
        const std::lock_guard one_at_a_time(writes->writing);
        while (const auto w = writes->next()) {
          if (w->note) TRY_DO(store.put_note(w->path, w->graph, {w->node, *w->note}));
          if (!w->note) TRY_DO(store.drop_note(w->path, w->graph, w->node));
        }
        return true;
      },
      [this](Result<bool> kept) {
        if (!kept) window_.log(text(kept.error().line()), true);
      });
}

std::optional<Workbench::NoteWrites::Write> Workbench::NoteWrites::next() {
  const std::lock_guard lock(mutex);
  if (waiting.empty()) return std::nullopt;
  Write first = std::move(waiting.front());
  waiting.pop_front();
  return first;
}

void Workbench::set_notes(Document& document, std::map<std::string, QString> notes) {
  for (auto& [node, note] : document.notes) notes[node] = note;  // written while the store was read
  document.notes = std::move(notes);
  document.notes_read = true;
  if (document.notes.empty()) return;
  if (current_ == &document && document.graph) for_each_view([&](Controller& view) { view.facts_changed(document); });
}

void Workbench::fold(const QString& frame_key) {
  if (!current_) return;
  std::string key = frame_key.toStdString();
  current_->folding = Folding::Asked;
  if (current_->folded.erase(key) == 0) current_->folded.insert(key);
  render(*current_, true);
}

void Workbench::fold_all(bool folded) {
  if (!current_graph()) return;
  current_->folded.clear();
  current_->folding = folded ? Folding::Overview : Folding::Asked;
  render(*current_, true);
}

}  // namespace partita::views
