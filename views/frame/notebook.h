#pragma once
#include <QObject>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "views/frame/screen.h"

namespace partita::views {

/// The user's notes at nodes, and their way to the store.
class Notebook : public QObject {
  Q_OBJECT

 public:
  /// `store_file`: empty: there is no store, and notes end with the window.
  Notebook(Documents& documents, Screen& screen, JobTracker& jobs, Window& window, std::string store_file);

  /// Keeps a note at a node of the current document, in the store too; without a text it is a bookmark, nullopt removes
  /// it.
  void set(const QString& node, const std::optional<QString>& note);
  /// What came from the store: not kept again.
  void take(Document& document, std::map<std::string, QString> notes);

 private:
  /// Notes on their way to the store.
  struct Writes {
    struct Write {
      std::string path, graph, node;
      std::optional<std::string> note;  ///< nullopt: removes it
    };
    std::optional<Write> next();

    std::mutex writing;  ///< held by the job that writes
    std::mutex mutex;    ///< guards `waiting`
    std::deque<Write> waiting;
  };

  Documents& documents_;
  Screen& screen_;
  JobTracker& jobs_;
  Window& window_;
  const std::string store_file_;
  const std::shared_ptr<Writes> writes_ = std::make_shared<Writes>();
};

}  // namespace partita::views
