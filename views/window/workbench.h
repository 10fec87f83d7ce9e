#pragma once
#include <QObject>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "core/base/check.h"
#include "views/session/artefact_tree.h"
#include "views/session/document.h"
#include "views/session/jobs.h"
#include "views/session/selection.h"
#include "views/window/main_window.h"
#include "views/window/tools.h"

namespace partita::views {

/// What is open, which of it is on the screen, and the jobs at work on it. Makes the views out of their table and tells
/// them what changed; what a view asks of core is in its own folder.
class Workbench : public QObject {
  Q_OBJECT

 public:
  /// Opens files while the views are being made, and shows the graph of this id as soon as one of them has it.
  explicit Workbench(WorkbenchTools tools, const QStringList& paths = {}, const QString& graph_id = {});
  ~Workbench() override;

  MainWindow& window() { return window_; }
  JobTracker& jobs() { return jobs_; }
  Selection& selection() { return selection_; }
  ArtefactTree& tree() { return tree_; }
  const WorkbenchTools& tools() const { return tools_; }
  const TextWidth& text_width() const { return text_width_; }  ///< of cards
  const std::map<QString, std::unique_ptr<Document>>& documents() const { return documents_; }
  Document* current() { return current_; }  ///< the document on the screen; null: none
  /// The current document when it holds a graph that has been read, else null.
  Document* current_graph() { return current_ && current_->graph ? current_ : nullptr; }
  Document* document(const QString& key);  ///< null when there is none

  /// The view of this class; null when the program does not offer it.
  template <class T>
  T* find() const {
    for (const Made& view : views_)
      if (auto* found = dynamic_cast<T*>(view.controller.get())) return found;
    return nullptr;
  }
  /// The same, for views that are always offered.
  template <class T>
  T& get() const {
    T* found = find<T>();
    CHECK(found != nullptr, "no such view");
    return *found;
  }
  template <class F>
  void for_each_view(const F& f) {
    for (const Made& view : views_) f(*view.controller);
  }

  void open(const QString& path);
  void close_file(const QString& path);  ///< with all that was made from it
  /// Brings a document to the screen; renders it first when that has not been done.
  void show(const QString& key);
  /// Brings the view of this name to the front and starts what it needs to have something to show. False when there is
  /// no such view.
  bool show_view(const QString& name);
  Document& add_document(std::unique_ptr<Document> document, const QStringList& groups, const QString& detail,
                         const QString& parent_key, const QString& heading = {});
  /// Cards keep their places unless the layout is to be made anew.
  void render(Document& document, bool new_layout = false);
  /// Offers an action beside the search field while it fits the document on the screen; elsewhere it is disabled.
  void offer(QAction* action, const QString& text, std::function<bool(const Document&)> fits);
  /// File, compilation and title: tells all that is open apart.
  QString place_of(const Document& document) const;
  QString title_of(const QString& path) const;  ///< of a file, different from those of all that are open
  /// What is on the screen is not the document itself but this graph, as "after fuse_addmm".
  void show_step(const QString& step, std::shared_ptr<const Graph> graph, Facts facts);
  const Document* on_screen() const { return step_ ? step_.get() : current_; }  ///< the step, else current()
  /// Tells the views that something was found out about nodes, when the document is on the screen.
  void facts_changed(const Document& document);
  void select_node(const QString& node) { selection_.select_node(node); }
  void pin(const QString& node, Pin pin);
  void undo_pin();
  void redo_pin();
  /// Keeps a note at a node of the current document, in the store too; without a text it is a bookmark, nullopt removes
  /// it.
  void set_note(const QString& node, const std::optional<QString>& note);
  /// What came from the store: not kept again.
  void set_notes(Document& document, std::map<std::string, QString> notes);
  void fold(const QString& frame_key);               ///< or unfold
  void fold_all(bool folded);                        ///< back to the overview, or everything open
  void set_inputs(const QString& path);              ///< the IO file of all views
  const QString& inputs() const { return inputs_; }  ///< empty: the archive's samples, else made up
  /// Shows an error where the user looks; a cancelled job is none.
  void report(const Diagnostic& problem);
  /// The command that does what is on the screen, for a shell.
  QString command_line() const;

 Q_SIGNALS:
  void graphs_added(const QModelIndex& file);       ///< of a file that is being added; its texts follow
  void loaded(QString path);                        ///< read, with what could not be read reported
  void failed(const partita::Diagnostic& problem);  ///< nothing of a file could be read, or a graph not be drawn
  void shown(QString key);
  void closed(QString path);

 private:
  void make_views();
  void add_commands();
  /// A file with the graph to show first, if any, read as far as a picture needs.
  struct Opened {
    Loaded loaded;
    std::string first;  ///< id of an artefact; empty: there is none
    std::shared_ptr<const Rendering> read;
  };
  void add_loaded(const QString& path, Opened opened);
  void name_files();
  void set_rendering(const QString& key, Rendering rendering);
  QSizeF room_for_pictures() const;
  void put_on_screen(Document& document);
  void select_in_views(const Spot& spot);
  void search(const QString& needle);
  void remember(const QString& path);
  void refresh_recent();
  void show_status(const Document& document);
  std::vector<PaletteEntry> palette_entries(const QString& typed);
  void tell_pin(const Document& document);
  void change_pins(Pins pins);
  void draw_ended(int job);
  void back_to_drawn(const QString& key);
  void show_nothing();
  void refresh_undo();

  struct Offer {
    QAction* action;
    std::function<bool(const Document&)> fits;
  };
  struct Made {
    const ViewRow* row;
    std::unique_ptr<Controller> controller;
  };
  WorkbenchTools tools_;  // before jobs_, which use it until they have ended
  JobTracker jobs_;
  Selection selection_;
  ArtefactTree tree_;
  MainWindow window_;
  TextWidth text_width_;
  std::map<QString, std::unique_ptr<Document>> documents_;
  Document* current_ = nullptr;
  std::unique_ptr<const Document> step_;  ///< of its passes; null: the document itself is shown
  QString wanted_id_, inputs_;
  std::vector<Made> views_;
  std::vector<Offer> offers_;
  /// Notes on their way to the store.
  struct NoteWrites {
    struct Write {
      std::string path, graph, node;
      std::optional<std::string> note;  ///< nullopt: removes it
    };
    std::optional<Write> next();

    std::mutex writing;  ///< held by the job that writes
    std::mutex mutex;    ///< guards `waiting`
    std::deque<Write> waiting;
  };
  std::shared_ptr<NoteWrites> note_writes_ = std::make_shared<NoteWrites>();
  QAction *undo_ = nullptr, *redo_ = nullptr;
  QString pinned_;                ///< the node of the pin that is being tried; empty: none is
  std::set<int> loads_;           ///< jobs that read files
  std::map<int, QString> draws_;  ///< jobs that draw, whose result did not come yet: keys of their documents
  QString shown_;                 ///< key of the document that came to the screen last
};

}  // namespace partita::views
