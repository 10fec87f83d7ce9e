// Loads files in jobs and makes documents of what they hold. Names of files, groups and documents are made different
// from one another.
#include "views/frame/documents.h"

#include <QDir>
#include <QFileInfo>
#include <algorithm>

#include "views/frame/window.h"
#include "views/look/format.h"
#include "views/session/kept_state.h"
#include "views/session/samples.h"

namespace partita::views {
namespace {

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

const QString Documents::kStep = QStringLiteral("  ›  ");

Documents::Documents(JobTracker& jobs, Window& window) : jobs_(jobs), window_(window) {
  connect(&jobs_, &JobTracker::finished, this, [this](int id) { loads_.erase(id); });
}

Document* Documents::find(const QString& key) const {
  auto found = documents_.find(key);
  return found == documents_.end() ? nullptr : found->second.get();
}

void Documents::open(const QString& path) {
  const Result<QString> on_disk = path_on_disk(path);
  if (!on_disk) return window_.report(on_disk.error());
  QString full = QDir::cleanPath(QFileInfo(*on_disk).absoluteFilePath());
  if (loads_.empty()) window_.clear_problems();
  loads_.insert(jobs_.start<Opened>(
      tr("Load %1").arg(file_title(full)), "load:" + full, this,
      [full, wanted = wanted_id_.toStdString()](const Progress& progress) -> Result<Opened> {
        Opened opened;
        opened.followed = std::make_shared<Followed>(full.toStdString());
        TRY(opened.loaded, opened.followed->begin(&progress));
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
        if (result) return add_loaded(full, *std::move(result));
        window_.report(result.error());
        Q_EMIT failed(result.error());
      }));
}

void Documents::reload(const QString& path) {
  if (current_ && current_->path == path) wanted_id_ = current_->graph_id();
  close_file(path);
  open(path);
}

void Documents::close_file(const QString& path) {
  const bool shown = current_ && current_->path == path;
  jobs_.cancel_of(path);
  for (const auto& [key, document] : documents_)
    if (document->path == path) keep_state(*document);
  tree_.remove_file(path);
  name_files();
  if (shown) current_ = nullptr;
  followed_.erase(path);
  std::erase_if(documents_, [&](const auto& document) { return document.second->path == path; });
  Q_EMIT closed(path);
  if (shown) Q_EMIT show_asked(documents_.empty() ? QString() : documents_.begin()->first);
}

Document& Documents::add(std::unique_ptr<Document> document, const QStringList& groups, const QString& detail,
                         const QString& parent_key, const QString& heading) {
  Document& added = *document;
  added.group = groups.join(kStep);
  if (const Document* parent = find(parent_key))
    added.group = parent->group.isEmpty() ? parent->title : parent->group + kStep + parent->title;
  tree_.add_document(added.path, groups, added.key, added.title, detail, parent_key, heading);
  documents_[added.key] = std::move(document);
  return added;
}

void Documents::add_artefact(const QString& path, const Artefact& artefact, bool below_heading) {
  auto document = std::make_unique<Document>();
  document->path = path;
  document->id = text(artefact.id);
  document->key = path + "#" + document->id;
  if (documents_.contains(document->key)) return;
  document->title = text(artefact.title.empty() ? artefact.id : artefact.title);
  document->kind = artefact.kind;
  for (const QString& named : {text(artefact.group), QFileInfo(path).fileName()})
    if (!named.isEmpty() && document->title.endsWith(" of " + named)) document->title.chop(named.size() + 4);
  document->artefact = artefact;
  add(std::move(document), groups_of(artefact, path), below_heading ? QString() : text(kind_name(artefact.kind)), {},
      below_heading ? tr("texts") : QString());
}

void Documents::add_loaded(const QString& path, Opened opened) {
  const Loaded& loaded = opened.loaded;
  followed_[path] = opened.followed;
  QModelIndex file = tree_.add_file(path, title_of(path));
  name_files();
  // Graphs come first. The other texts that a log has about a compilation follow under a heading.
  const bool has_graphs = std::ranges::any_of(loaded.artefacts, &Artefact::is_graph);
  for (const Artefact& artefact : loaded.artefacts)
    if (artefact.is_graph()) add_artefact(path, artefact, false);
  Q_EMIT graphs_added(file);
  for (const Artefact& artefact : loaded.artefacts)
    if (!artefact.is_graph()) add_artefact(path, artefact, has_graphs);
  tell_warnings(path, loaded.warnings);
  const QString first = path + "#" + text(opened.first);
  if (text(opened.first) == wanted_id_) wanted_id_.clear();
  if (Document* document = find(first); document && !document->code) document->read = std::move(opened.read);
  Q_EMIT this->loaded(path);
  if (!loaded.artefacts.empty()) Q_EMIT show_asked(first);
}

std::shared_ptr<Followed> Documents::followed(const QString& path) const {
  const auto found = followed_.find(path);
  return found == followed_.end() ? nullptr : found->second;
}

void Documents::add_news(const QString& path, LoadNews news) {
  const bool has_graphs = std::ranges::any_of(documents_, [&](const auto& document) {
    return document.second->path == path && document.second->kind != ArtefactKind::Text;
  });
  std::int64_t graphs = 0;
  for (const Artefact& artefact : news.artefacts) {
    Document* known = find(path + "#" + text(artefact.id));
    if (!known) {
      graphs += artefact.is_graph();
      add_artefact(path, artefact, has_graphs && !artefact.is_graph());
      continue;
    }
    known->artefact = artefact;
    if (known == current_) continue;  // what is read stays as it is
    known->code = nullptr;
    known->scene = nullptr;
  }
  tell_warnings(path, news.warnings);
  for (const std::string& file : news.rewritten)
    window_.show_problem(tr("%1 changed on disk: F5 reads it again").arg(file_title(text(file))));
  if (graphs > 0) window_.tell(tr("%1: %2 came").arg(title_of(path), count_text(graphs, "graph")));
}

void Documents::tell_warnings(const QString& path, const std::vector<Diagnostic>& warnings) {
  for (const Diagnostic& warning : warnings) window_.log(text(warning.line()), true);
  // What a file without a graph is, in a line, is no loss.
  for (const Diagnostic& w : warnings)
    if (warnings.size() == 1 && w.code == "load.no_graph")
      return window_.show_problem(tr("%1: %2").arg(file_title(path), text(w.message)), text(w.line()));
  const auto is_note = [](const Diagnostic& d) { return d.severity == Severity::Note; };
  const auto notes = static_cast<int>(std::ranges::count_if(warnings, is_note));
  const int unread = static_cast<int>(warnings.size()) - notes;
  if (unread > 0)
    window_.show_problem(
        tr("%1: %2 could not be read; the rest is open").arg(file_title(path), count_text(unread, "part")),
        text(std::ranges::find_if_not(warnings, is_note)->line()));
  else if (notes > 0)
    window_.show_problem(
        tr("%1: all was read; %2 not as recorded in it").arg(file_title(path), count_text(notes, "part")),
        text(warnings.front().line()));
}

QString Documents::title_of(const QString& path) const {
  constexpr int kMostFolders = 16;
  QStringList others = tree_.paths();
  others.removeAll(path);
  for (int folders = 1;; ++folders) {
    const QString title = file_title(path, folders);
    const auto equal = [&](const QString& other) { return file_title(other, folders) == title; };
    if (folders == kMostFolders || std::ranges::none_of(others, equal)) return title;
  }
}

void Documents::name_files() {
  for (const QString& path : tree_.paths()) tree_.rename_file(path, title_of(path));
}

QString Documents::place_of(const Document& document) const {
  QStringList steps{title_of(document.path), document.group, document.title};
  steps.removeAll({});
  return steps.join(kStep);
}

}  // namespace partita::views
