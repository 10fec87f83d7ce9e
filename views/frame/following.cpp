#include "views/frame/following.h"

#include <QDeadlineTimer>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QSocketNotifier>
#include <QTimer>
#include <algorithm>

#include "core/base/file_watch.h"
#include "views/frame/documents.h"

namespace partita::views {
namespace {

constexpr int kSoon = 300;            // milliseconds, so that what comes together is read together
constexpr int kOtherMachines = 2000;  // what they write over a network is not told

}  // namespace

struct Following::Watched {
  Watched(const QString& path, std::shared_ptr<Followed> followed)
      : path(path),
        followed(std::move(followed)),
        watch(QFileInfo(path).isDir() ? std::string() : QFileInfo(path).fileName().toStdString()) {
    for (const std::string& folder : this->followed->folders()) watch.add(folder);
    timer.setSingleShot(true);
  }

  const QString path;
  const std::shared_ptr<Followed> followed;  ///< used by the reading thread while `reading`
  FileWatch watch;
  std::unique_ptr<QSocketNotifier> notifier;
  QTimer timer;
  QDeadlineTimer rest{0};  ///< no sooner is it read again
  bool reading = false;
};

Following::Following(Documents& documents) : documents_(documents) {
  pool_.setMaxThreadCount(1);
  pool_.setStackSize(16 << 20);
  connect(&documents, &Documents::loaded, this, &Following::start);
  connect(&documents, &Documents::closed, this, [this](const QString& path) { watched_.erase(path); });
}

Following::~Following() {
  progress_.stop = true;
  pool_.waitForDone();
}

void Following::start(const QString& path) {
  const auto followed = documents_.followed(path);
  if (!followed) return;
  const auto watched = std::make_shared<Watched>(path, followed);
  watched_[path] = watched;
  const std::weak_ptr<Watched> weak = watched;  // its own parts must not keep it
  connect(&watched->timer, &QTimer::timeout, this, [this, weak] {
    if (const auto alive = weak.lock()) look(alive);
  });
  watched->timer.start(kOtherMachines);
  if (watched->watch.descriptor() < 0) return;
  watched->notifier = std::make_unique<QSocketNotifier>(watched->watch.descriptor(), QSocketNotifier::Read);
  connect(watched->notifier.get(), &QSocketNotifier::activated, this, [weak] {
    const auto alive = weak.lock();
    if (!alive || !alive->watch.take() || alive->reading) return;
    const auto wait = std::max(kSoon, static_cast<int>(alive->rest.remainingTime()));
    if (alive->timer.remainingTime() > wait) alive->timer.start(wait);
  });
}

void Following::look(const std::shared_ptr<Watched>& watched) {
  watched->reading = true;
  pool_.start([this, followed = watched->followed, path = watched->path] {
    QElapsedTimer clock;
    clock.start();
    Result<LoadNews> read = followed->next(&progress_);
    if (progress_.cancelled()) return;
    auto news = std::make_shared<LoadNews>(read ? *std::move(read) : LoadNews{{}, {read.error()}, {}});
    const double seconds = static_cast<double>(clock.nsecsElapsed()) * 1e-9;
    QMetaObject::invokeMethod(
        this, [this, followed, path, news, seconds] { take(path, followed, std::move(*news), seconds); },
        Qt::QueuedConnection);
  });
}

void Following::take(const QString& path, const std::shared_ptr<Followed>& from, LoadNews news, double seconds) {
  const auto found = watched_.find(path);
  if (found == watched_.end() || found->second->followed != from) return;  // closed meanwhile
  Watched& watched = *found->second;
  watched.reading = false;
  if (!news.empty()) {
    for (const std::string& folder : from->folders()) watched.watch.add(folder);
    documents_.add_news(path, std::move(news));
  }
  constexpr double kShare = 0.02;  // of a processor
  watched.rest.setRemainingTime(static_cast<int>(seconds / kShare * 1000));
  watched.timer.start(std::max(kOtherMachines, static_cast<int>(watched.rest.remainingTime())));
}

}  // namespace partita::views
