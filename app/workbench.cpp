#include "app/workbench.h"

#include <QApplication>
#include <QClipboard>
#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QHeaderView>
#include <QTreeView>
#include <algorithm>

#include "views/look/format.h"

namespace partita {

using views::text;

namespace {

// A word as a shell reads it.
QString quoted(const QString& word) {
  for (QChar c : word)
    if (!c.isLetterOrNumber() && !QString("/._-+:=,@%").contains(c))
      return "'" + QString(word).replace("'", "'\\''") + "'";
  return word.isEmpty() ? "''" : word;
}

std::vector<views::EmptyPage::Sample> samples() {
  std::vector<views::EmptyPage::Sample> found;
  QDir folder(QCoreApplication::applicationDirPath() + "/../../resources/samples");
  for (const QFileInfo& entry : folder.entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name)) {
    QString program = entry.filePath() + "/program.pt2";
    found.push_back({entry.fileName(), QFile::exists(program) ? "exported program" : "folder",
                     QDir::cleanPath(QFile::exists(program) ? program : entry.filePath())});
  }
  return found;
}

}  // namespace

Workbench::Workbench(WorkbenchTools tools) : window_(jobs_), tools_(std::move(tools)) {
  text_width_ = views::measured_text_width(views::card_title_font(), views::card_detail_font());
  wire_window();
  wire_search();
  wire_analyses();
  wire_measures();
  refresh_recent();
  window_.set_palette_source([this](const QString& typed) { return palette_entries(typed); });
}

void Workbench::wire_window() {
  auto* tree = window_.tree();
  tree->setModel(&tree_);
  tree->header()->setStretchLastSection(false);
  tree->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  tree->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  auto chosen = [this](const QModelIndex& index) {
    QString key = index.siblingAtColumn(0).data(views::ArtefactTree::KeyRole).toString();
    if (!key.isEmpty()) show(key);
  };
  connect(tree, &QTreeView::clicked, this, chosen);
  connect(tree, &QTreeView::activated, this, chosen);

  connect(&window_, &views::MainWindow::open_asked, this, &Workbench::open);
  connect(&selection_, &views::Selection::changed, this, &Workbench::select_in_views);
  auto choose = [this](const QString& node) { selection_.select_node(node); };
  connect(window_.graph(), &views::GraphView::node_chosen, this, choose);
  connect(window_.code(), &views::CodeView::node_chosen, this, choose);
  connect(window_.inspector(), &views::Inspector::node_chosen, this, choose);
  connect(window_.graph(), &views::GraphView::pin_asked, this, &Workbench::pin);
  connect(window_.inspector(), &views::Inspector::pin_asked, this, &Workbench::pin);
  connect(window_.graph(), &views::GraphView::fold_asked, this, &Workbench::fold);
  connect(&jobs_, &views::JobTracker::ended, this,
          [this](const QString& name, double seconds) { window_.log(name + ": " + views::seconds_text(seconds)); });

  window_.add_command("View", tr("Back"), QKeySequence("Alt+Left"), [this] { selection_.back(); });
  window_.add_command("View", tr("Forward"), QKeySequence("Alt+Right"), [this] { selection_.forward(); });
  window_.add_command("Edit", tr("Copy as command line"), QKeySequence("Ctrl+Shift+C"), [this] {
    QApplication::clipboard()->setText(command_line());
    window_.log(tr("Copied: %1").arg(command_line()));
  });
  for (const char* format : {"svg", "png", "pdf"})
    window_.add_command("File", tr("Export the picture as %1…").arg(QString(format).toUpper()), {},
                        [this, format] { export_picture(format); });
  if (tools_.graphviz) window_.add_command("File", tr("Export through Graphviz…"), {}, [this] { ask_graphviz_path(); });
  window_.add_command("Edit", tr("Cancel all jobs"), QKeySequence("Ctrl+."), [this] { jobs_.cancel_all(); });
}

void Workbench::wire_search() {
  auto reading = [this] { return window_.page() == window_.text() ? window_.text() : window_.code(); };
  connect(&window_, &views::MainWindow::search_changed, this, [this, reading](const QString& needle) {
    window_.graph()->set_search(needle);
    window_.code()->set_search(needle);
    window_.text()->set_search(needle);
    if (const auto* code = reading()->document(); code && !needle.isEmpty())
      window_.set_status(tr("%1 found").arg(views::count_text(code->count(needle), "line")), {});
  });
  connect(&window_, &views::MainWindow::search_next, this,
          [reading](bool backwards) { reading()->find_next(backwards); });
}

std::vector<views::PaletteEntry> Workbench::palette_entries(const QString& typed) {
  std::vector<views::PaletteEntry> entries;
  if (current_ && current_->graph)
    for (const Node* node : *current_->graph) {
      QString name = text(node->name());
      if (views::fuzzy_score(typed, name) < 0) continue;
      entries.push_back({name, text(views::shape_text(node->meta)), [this, name] { selection_.select_node(name); }});
      if (entries.size() >= 300) break;
    }
  for (const auto& [key, document] : documents_)
    if (views::fuzzy_score(typed, document->title) >= 0)
      entries.push_back({document->title, QFileInfo(document->path).fileName(), [this, key = key] { show(key); }});
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
  QStringList words{"partita", "open", quoted(current_->path)};
  QStringList graph;
  if (!current_->id.isEmpty()) graph << "--graph" << quoted(current_->id);
  PartitionOptions pins = views::partition_options(*current_);
  if (window_.page() == minify_) {
    const views::MinifyRequest request = minify_->request();
    words[1] = "minify";
    words << graph;
    if (const auto tool = tools_.minifier(request)) words << text(tool->options);
    if (!request.inputs.isEmpty()) words << "--inputs" << quoted(request.inputs);
    words << "-o" << "repro";
  } else if (window_.bottom_title() == tr("Run")) {
    const views::ProgramRequest request = run_->request();
    words[1] = "run";
    words << graph << "--compiler" << request.compiler;
    if (!request.inputs.isEmpty()) words << "--inputs" << quoted(request.inputs);
    if (request.train) words << "--train";
    if (!request.folder.isEmpty()) words << "--compiler-folder" << quoted(request.folder);
  } else if (window_.bottom_title() == tr("Passes") && film_of_ == current_->key) {
    words[1] = "passes";
    words << graph << "--print" << "changed";
  } else if (window_.bottom_title() == tr("Compare") && compare_->table()->model()->rowCount() > 0) {
    views::CompareRequest request = compare_->request();
    words[1] = "compare";
    words << graph << "--backends" << request.expected + "," + request.found;
    if (!request.inputs.isEmpty()) words << "--inputs" << quoted(request.inputs);
    if (request.per_node) words << "--per-node";
  } else if (!current_->pins.empty() || current_->memory_budget < 1 || window_.page() == aot_) {
    words[1] = "aot";
    words << graph;
    for (const std::string& name : pins.save) words << "--save" << quoted(text(name));
    for (const std::string& name : pins.recompute) words << "--recompute" << quoted(text(name));
    if (current_->memory_budget < 1) words << "--memory-budget" << QString::number(current_->memory_budget);
    words << "-o" << "out";
  } else {
    words << graph;
  }
  return words.join(' ');
}

void Workbench::open(const QString& path) {
  QString full = QFileInfo(path).absoluteFilePath();
  window_.show_problem({});
  jobs_.start<Loaded>(
      tr("Load %1").arg(QFileInfo(full).fileName()), "load:" + full, this,
      [full](const Progress& progress) { return load(full.toStdString(), &progress); },
      [this, full](Result<Loaded> result) {
        if (!result) {
          report(result.error());
          Q_EMIT failed(result.error());
          return;
        }
        remember(full);
        add_loaded(full, *std::move(result));
      });
}

views::Document& Workbench::add_document(std::unique_ptr<Document> document, const QString& group,
                                         const QString& detail, const QString& parent_key, const QString& heading) {
  Document& added = *document;
  tree_.add_document(added.path, group, added.key, added.title, detail, parent_key, heading);
  documents_[added.key] = std::move(document);
  return added;
}

void Workbench::add_loaded(const QString& path, Loaded loaded) {
  QModelIndex file = tree_.add_file(path, QFileInfo(path).fileName());
  // Graphs are what people come for: what else a log says about a compile stands behind them, under a heading.
  bool has_graphs = std::ranges::any_of(loaded.artefacts, &Artefact::is_graph);
  auto add = [&](const Artefact& artefact) {
    auto document = std::make_unique<Document>();
    document->path = path;
    document->id = text(artefact.id);
    document->key = path + "#" + document->id;
    if (documents_.contains(document->key)) return;
    document->title = text(artefact.title.empty() ? artefact.id : artefact.title);
    document->kind = artefact.kind;
    // A file's own folder says nothing; a folder's parts are told apart by what follows its path.
    QString group = text(artefact.group);
    if (group.startsWith(path)) group = group.mid(path.size());
    while (group.startsWith('/') && QFileInfo(path).isDir()) group.remove(0, 1);
    if (group == QFileInfo(path).path()) group.clear();
    if (!group.isEmpty() && document->title.endsWith(" of " + group)) document->title.chop(group.size() + 4);
    QString kind = text(kind_name(artefact.kind));
    document->artefact = artefact;
    bool below_heading = has_graphs && !artefact.is_graph();
    add_document(std::move(document), group, below_heading ? QString() : kind, {},
                 below_heading ? tr("texts") : QString());
  };
  for (const Artefact& artefact : loaded.artefacts)
    if (artefact.is_graph()) add(artefact);
  window_.tree()->expand(file);
  for (int row = 0; row < tree_.rowCount(file) && row < 12; ++row) window_.tree()->expand(tree_.index(row, 0, file));
  for (const Artefact& artefact : loaded.artefacts)
    if (!artefact.is_graph()) add(artefact);
  for (const Diagnostic& warning : loaded.warnings) window_.log(text(warning.line()), true);
  if (!loaded.warnings.empty())
    window_.show_problem(tr("%1 could not be read; the rest is open")
                             .arg(views::count_text(static_cast<int>(loaded.warnings.size()), "part")),
                         text(loaded.warnings.front().line()));
  // What to show first: the graph a verb would take, else the first graph, else the first text.
  QString first;
  if (loaded.find(wanted_id_.toStdString()) && !wanted_id_.isEmpty())
    first = path + "#" + std::exchange(wanted_id_, {});
  else if (auto picked = loaded.pick({}))
    first = path + "#" + text((*picked)->id);
  for (const Artefact& artefact : loaded.artefacts)
    if (first.isEmpty() && artefact.is_graph()) first = path + "#" + text(artefact.id);
  if (first.isEmpty() && !loaded.artefacts.empty()) first = path + "#" + text(loaded.artefacts.front().id);
  Q_EMIT this->loaded(path);
  if (!first.isEmpty()) show(first);
}

}  // namespace partita
