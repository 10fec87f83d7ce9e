#pragma once
#include "views/session/jobs.h"
#include "views/table/table_panel.h"

class QPushButton;

namespace partita::views {

/// The jobs at work, the oldest first, then those that ended, the newest first.
std::vector<Row> job_rows(const std::vector<JobRow>& running, const std::deque<EndedJob>& ended);

/// The jobs at work, to be cancelled, and how those of the past ended.
class JobsView : public TablePanel {
  Q_OBJECT

 public:
  explicit JobsView(QWidget* parent = nullptr);
  /// The chosen job stays chosen until it ends.
  void set_jobs(const std::vector<JobRow>& running, const std::deque<EndedJob>& ended);
  QPushButton* cancel() { return cancel_; }

 Q_SIGNALS:
  void cancel_asked(int job);

 private:
  int chosen() const;  ///< index of the chosen one among the running jobs; -1: none

  std::vector<int> running_;  ///< ids, in the order of rows
  QPushButton* cancel_;
};

}  // namespace partita::views
