#include "views/frame/notebook.h"

#include "core/store/store.h"
#include "views/frame/window.h"
#include "views/look/format.h"

namespace partita::views {

Notebook::Notebook(Documents& documents, Screen& screen, JobTracker& jobs, Window& window, std::string store_file)
    : documents_(documents), screen_(screen), jobs_(jobs), window_(window), store_file_(std::move(store_file)) {}

void Notebook::set(const QString& node, const std::optional<QString>& note) {
  Document* current = documents_.current_graph();
  if (!current || !current->graph->find(node.toStdString())) return;
  const std::string name = node.toStdString();
  if (note) {
    current->notes[name] = *note;
  } else if (current->notes.erase(name) == 0) {
    return;
  }
  screen_.facts_changed(*current);
  // Jobs may overtake one another: each writes all that was asked for so far, in order.
  {
    const std::lock_guard lock(writes_->mutex);
    writes_->waiting.push_back({stored_path(current->path.toStdString()), current->graph_id().toStdString(), name,
                                note ? std::optional(note->toStdString()) : std::nullopt});
  }
  jobs_.start<bool>(
      tr("Keep the note at %1").arg(node), {}, this,
      [file = store_file_, writes = writes_](const Progress&) -> Result<bool> {
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

std::optional<Notebook::Writes::Write> Notebook::Writes::next() {
  const std::lock_guard lock(mutex);
  if (waiting.empty()) return std::nullopt;
  Write first = std::move(waiting.front());
  waiting.pop_front();
  return first;
}

void Notebook::take(Document& document, std::map<std::string, QString> notes) {
  for (auto& [node, note] : document.notes) notes[node] = note;  // written while the store was read
  document.notes = std::move(notes);
  document.notes_read = true;
  if (!document.notes.empty() && document.graph) screen_.facts_changed(document);
}

}  // namespace partita::views
