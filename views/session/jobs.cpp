#include "views/session/jobs.h"

#include <algorithm>

namespace partita::views {

struct JobTracker::Job {
  int id = 0;
  QString name, key;
  QPointer<QObject> receiver;
  bool has_receiver = false;
  QElapsedTimer clock;
  Progress progress;
  std::mutex mutex;  ///< guards the three below
  double fraction = -1;
  std::string at;
  Outcome outcome;
};

JobTracker::JobTracker(QObject* parent) : QObject(parent) {
  // A paused minification keeps its thread but needs no processor, so that there are more threads than processors.
  pool_.setMaxThreadCount(std::max(4, QThread::idealThreadCount()));
  pool_.setStackSize(16 << 20);  // recursion over deeply nested graphs needs more than the default of 8 MiB
  poll_.setInterval(100);
  connect(&poll_, &QTimer::timeout, this, &JobTracker::changed);
}

JobTracker::~JobTracker() {
  stop_within(-1);
}

int JobTracker::start_erased(const QString& name, const QString& key, QObject* receiver, Work work) {
  if (!key.isEmpty())
    for (auto& job : jobs_)
      if (job->key == key) job->progress.stop = true;
  auto job = std::make_shared<Job>();
  job->id = next_id_++;
  job->name = name;
  job->key = key;
  job->receiver = receiver;
  job->has_receiver = receiver != nullptr;
  job->clock.start();
  job->progress.report = [raw = job.get()](double fraction, std::string_view what) {
    std::lock_guard lock(raw->mutex);
    raw->fraction = fraction;
    raw->at = what;
  };
  jobs_.push_back(job);
  pool_.start([this, job, work = std::move(work)] {
    if (!job->progress.cancelled()) {
      Outcome outcome = work(job->progress);
      std::lock_guard lock(job->mutex);
      job->outcome = std::move(outcome);
    }
    QMetaObject::invokeMethod(this, [this, id = job->id] { finish(id); }, Qt::QueuedConnection);
  });
  poll_.start();
  Q_EMIT changed();
  return job->id;
}

void JobTracker::finish(int id) {
  auto found = std::find_if(jobs_.begin(), jobs_.end(), [id](const auto& job) { return job->id == id; });
  if (found == jobs_.end()) return;
  std::shared_ptr<Job> job = *found;
  jobs_.erase(found);
  if (jobs_.empty()) poll_.stop();
  const double seconds = static_cast<double>(job->clock.elapsed()) / 1000;
  const std::optional<Diagnostic>& problem = job->outcome.problem;
  const bool cancelled = !job->outcome.deliver || job->progress.cancelled() || (job->has_receiver && !job->receiver) ||
                         (problem && problem->fault == Fault::Cancelled);
  constexpr std::size_t kMostEnded = 300;
  history_.push_front({job->name, seconds, QDateTime::currentDateTime(),
                       cancelled ? EndedJob::Outcome::Cancelled
                       : problem ? EndedJob::Outcome::Failed
                                 : EndedJob::Outcome::Done,
                       problem && !cancelled ? QString::fromStdString(problem->line()) : QString()});
  if (history_.size() > kMostEnded) history_.pop_back();
  if (job->outcome.deliver && !job->progress.cancelled() && !(job->has_receiver && !job->receiver)) {
    job->outcome.deliver();
    Q_EMIT ended(job->name, seconds);
  }
  Q_EMIT finished(id);
  Q_EMIT changed();
}

void JobTracker::cancel(int id) {
  for (auto& job : jobs_)
    if (job->id == id) job->progress.stop = true;
  Q_EMIT changed();
}

void JobTracker::cancel_all() {
  for (auto& job : jobs_) job->progress.stop = true;
  Q_EMIT changed();
}

bool JobTracker::stop_within(int milliseconds) {
  for (auto& job : jobs_) job->progress.stop = true;
  pool_.clear();
  return pool_.waitForDone(milliseconds);
}

void JobTracker::cancel_of(const QString& path) {
  for (auto& job : jobs_)
    if (job->key.endsWith(":" + path) || job->key.contains(":" + path + "#")) job->progress.stop = true;
  Q_EMIT changed();
}

bool JobTracker::running(int id) const {
  return std::ranges::any_of(jobs_, [id](const auto& job) { return job->id == id && !job->progress.cancelled(); });
}

std::vector<JobRow> JobTracker::rows() const {
  std::vector<JobRow> rows;
  for (const auto& job : jobs_) {
    std::lock_guard lock(job->mutex);
    rows.push_back({job->id, job->name, QString::fromStdString(job->at), job->fraction,
                    static_cast<double>(job->clock.elapsed()) / 1000, job->progress.cancelled()});
  }
  return rows;
}

}  // namespace partita::views
