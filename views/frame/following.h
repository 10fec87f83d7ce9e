#pragma once
#include <QObject>
#include <QThreadPool>
#include <map>
#include <memory>

#include "core/base/progress.h"
#include "core/load/follow.h"

namespace partita::views {

class Documents;

/// Follows the files that are open: what a program adds to a log or a folder comes to the window while it is looked at.
/// It reads on a thread of its own, and no more often than costs some percent of a processor.
class Following : public QObject {
  Q_OBJECT

 public:
  explicit Following(Documents& documents);
  ~Following() override;

 private:
  struct Watched;
  void start(const QString& path);
  void look(const std::shared_ptr<Watched>& watched);
  void take(const QString& path, const std::shared_ptr<Followed>& from, LoadNews news, double seconds);

  Documents& documents_;
  QThreadPool pool_;
  Progress progress_;
  std::map<QString, std::shared_ptr<Watched>> watched_;  ///< by path
};

}  // namespace partita::views
