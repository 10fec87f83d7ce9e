#pragma once
#include <QObject>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/base/result.h"
#include "core/load/follow.h"
#include "views/session/artefact_tree.h"
#include "views/session/document.h"
#include "views/session/jobs.h"

namespace partita::views {

class Window;

/// What is open: files, as a tree with the documents of each, and the document that the user chose. Files are read in
/// jobs.
class Documents : public QObject {
  Q_OBJECT

 public:
  static const QString kStep;  ///< between the parts of a place

  Documents(JobTracker& jobs, Window& window);

  ArtefactTree& tree() { return tree_; }
  /// By key.
  const std::map<QString, std::unique_ptr<Document>>& all() const { return documents_; }
  Document* find(const QString& key) const;       ///< null when there is none
  Document* current() const { return current_; }  ///< on the screen, or being drawn for it; null: none
  /// The current document when it holds a graph that has been read, else null.
  Document* current_graph() const { return current_ && current_->graph ? current_ : nullptr; }
  void set_current(Document* document) { current_ = document; }  ///< as Screen shows it

  /// The graph of this id is shown as soon as a file that is opened has it.
  void want(const QString& graph_id) { wanted_id_ = graph_id; }
  void open(const QString& path);        ///< a file or folder, or a sample in the program
  void reload(const QString& path);      ///< reads a file anew, and shows the graph of before
  void close_file(const QString& path);  ///< with all that was made from it
  /// What reads more of an open file as it grows; null: none.
  std::shared_ptr<Followed> followed(const QString& path) const;
  /// Adds what came to an open file.
  void add_news(const QString& path, LoadNews news);
  /// Adds to the tree: to these groups of the document's file, or below the document it was made from.
  Document& add(std::unique_ptr<Document> document, const QStringList& groups, const QString& detail,
                const QString& parent_key, const QString& heading = {});
  /// File, compilation and title: tells all that is open apart.
  QString place_of(const Document& document) const;
  QString title_of(const QString& path) const;  ///< of a file, different from those of all that are open

 Q_SIGNALS:
  void graphs_added(const QModelIndex& file);       ///< of a file that is being added; its texts follow
  void loaded(QString path);                        ///< read, with what could not be read reported
  void failed(const partita::Diagnostic& problem);  ///< nothing of a file could be read
  void closed(QString path);
  /// This document is to be shown: of a file that was loaded, or in place of one that was closed. Empty: none is left.
  void show_asked(QString key);

 private:
  /// A file with the graph to show first, if any, read as far as a picture needs.
  struct Opened {
    std::shared_ptr<Followed> followed;
    Loaded loaded;
    std::string first;  ///< id of an artefact; empty: there is none
    std::shared_ptr<const Rendering> read;
  };
  void add_loaded(const QString& path, Opened opened);
  void add_artefact(const QString& path, const Artefact& artefact, bool below_heading);
  void tell_warnings(const QString& path, const std::vector<Diagnostic>& warnings);
  void name_files();

  JobTracker& jobs_;
  Window& window_;
  ArtefactTree tree_;
  std::map<QString, std::unique_ptr<Document>> documents_;
  Document* current_ = nullptr;
  QString wanted_id_;
  std::set<int> loads_;                                    ///< jobs that read files
  std::map<QString, std::shared_ptr<Followed>> followed_;  ///< by path
};

}  // namespace partita::views
