#pragma once
#include <QDateTime>
#include <QObject>
#include <QString>
#include <QThreadPool>
#include <QTimer>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/base/raise.h"
#include "core/base/result.h"

namespace partita::views {

/// A job that runs in the background.
struct JobRow {
  int id = 0;
  QString name;          ///< "Load gpt2_train.log"
  QString at;            ///< what it works on now
  double fraction = -1;  ///< negative: unknown
  double seconds = 0;
  bool cancelled = false;  ///< asked to stop, not stopped yet
};

/// A job of the past.
struct EndedJob {
  QString name;
  double seconds = 0;
  QDateTime at;  ///< when it ended
  enum class Outcome : unsigned char { Done, Failed, Cancelled } outcome = Outcome::Done;
  QString problem;  ///< of a failed one
};

/// The Result of a job's work. Its error is also whatever the work raises.
template <class T>
Result<T> result_of(const std::function<Result<T>(const Progress&)>& work, const Progress& progress) {
  try {
    return catch_raised<T>([&] { return work(progress); });
  } catch (const std::exception& error) {
    return Diagnostic{Fault::Internal, "exception", std::string("internal error: ") + error.what()};
  }
}

/// Runs named jobs in the background, with progress and cancel. Results are delivered on the tracker's thread, in the
/// order in which they are ready, and never after a cancel or when the receiver is gone.
class JobTracker : public QObject {
  Q_OBJECT

 public:
  explicit JobTracker(QObject* parent = nullptr);
  ~JobTracker() override;  ///< cancels everything and waits

  /// A job with a `key` cancels the running one of the same key, so that only the newest gives a result.
  template <class T>
  int start(const QString& name, const QString& key, QObject* receiver, std::function<Result<T>(const Progress&)> work,
            std::function<void(Result<T>)> done) {
    return start_erased(name, key, receiver,
                        [work = std::move(work), done = std::move(done)](const Progress& progress) {
                          auto result = std::make_shared<Result<T>>(result_of<T>(work, progress));
                          return Outcome{[result, done] { done(std::move(*result)); },
                                         *result ? std::nullopt : std::optional(result->error())};
                        });
  }
  void cancel(int id);
  void cancel_all();
  void cancel_of(const QString& path);  ///< jobs on this file, by their keys
  std::vector<JobRow> rows() const;
  const std::deque<EndedJob>& history() const { return history_; }  ///< the newest first; the last few hundred
  /// Whether the job runs and has not been asked to stop.
  bool running(int id) const;
  bool idle() const { return jobs_.empty(); }
  /// Cancels everything and waits for the threads. False when one still runs after that time.
  bool stop_within(int milliseconds);

 Q_SIGNALS:
  void changed();  ///< rows() changed; emitted ten times a second while jobs run
  void ended(QString name, double seconds);
  void finished(int id);  ///< also when it was cancelled and no result was delivered

 private:
  struct Job;
  struct Outcome {
    std::function<void()> deliver;
    std::optional<Diagnostic> problem;
  };
  using Work = std::function<Outcome(const Progress&)>;
  int start_erased(const QString& name, const QString& key, QObject* receiver, Work work);
  void finish(int id);

  QThreadPool pool_;
  QTimer poll_;  ///< reads progress, so that jobs that report often cannot flood the event loop
  std::vector<std::shared_ptr<Job>> jobs_;
  std::deque<EndedJob> history_;
  int next_id_ = 1;
};

}  // namespace partita::views
