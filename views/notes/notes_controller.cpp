#include "core/store/store.h"
#include "views/frame/workbench.h"
#include "views/look/format.h"
#include "views/notes/notes_view.h"

namespace partita::views {
namespace {

/// Reads the notes of a graph when it is shown first, and hands on what the user writes.
class NotesController : public WidgetController<NotesView> {
 public:
  explicit NotesController(Workbench& bench) : WidgetController(bench) {
    view_->setObjectName("notes");
    connect(view_, &TablePanel::node_chosen, &bench.selection(), &Selection::select_node);
    connect(view_, &NotesView::note_written, &bench.notes(), &Notebook::set);
    connect(view_, &NotesView::note_removed, &bench.notes(),
            [&bench](const QString& node) { bench.notes().set(node, {}); });
    bench.window().add_command("Edit", tr("Bookmark the node, or remove its note"), QKeySequence("Ctrl+D"), [this] {
      const QString node = bench_.selection().spot().node;
      if (bench_.documents().current_graph() && !node.isEmpty())
        bench_.notes().set(node, note_of(node) ? std::nullopt : std::optional(QString()));
    });
    bench.window().add_command("Edit", tr("Write a note at the node"), QKeySequence("Ctrl+Shift+D"), [this] {
      raise();
      view_->write();
    });
  }
  void wait_for(const Document&) override {
    view_->set_rows({});
    view_->show_node({}, nullptr);
  }
  void set_document(const Document& document) override {
    view_->set_rows(note_rows(document));
    read(*bench_.documents().current());
  }
  void facts_changed(const Document& document) override {
    view_->set_rows(note_rows(document));
    select(bench_.selection().spot().node);
  }
  void select(const QString& node) override {
    view_->show_node(node, note_of(node));
    view_->select_node(node);
  }

 private:
  const QString* note_of(const QString& node) const {
    const Document* document = bench_.documents().current();
    const auto found = document->notes.find(node.toStdString());
    return found == document->notes.end() ? nullptr : &found->second;
  }

  void read(Document& document) {
    if (document.notes_read || !document.graph || bench_.tools().store_file.empty()) return;
    using Notes = std::map<std::string, QString>;
    bench_.jobs().start<Notes>(
        tr("Read the notes of %1").arg(document.title), "notes:" + document.key, this,
        [file = bench_.tools().store_file, path = stored_path(document.path.toStdString()),
         graph = document.graph_id().toStdString()](const Progress&) -> Result<Notes> {
          TRY(StoreFile store, StoreFile::open(file));
          TRY(const std::vector<NodeNote> kept, store.notes(path, graph));
          Notes notes;
          for (const NodeNote& note : kept) notes[note.node] = text(note.text);
          return notes;
        },
        [this, key = document.key](Result<Notes> notes) {
          Document* of = bench_.documents().find(key);
          if (!notes) return bench_.window().log(text(notes.error().line()), true);
          if (of) bench_.notes().take(*of, *std::move(notes));
        });
  }
};

}  // namespace

extern const MakeView make_notes_view = make_view<NotesController>;

}  // namespace partita::views
