#include "views/jobs/jobs_view.h"

#include <algorithm>

#include "views/look/arrange.h"
#include "views/look/format.h"

namespace partita::views {

std::vector<Row> job_rows(const std::vector<JobRow>& running, const std::deque<EndedJob>& ended) {
  std::vector<Row> rows;
  for (const JobRow& job : running)
    rows.push_back(
        {{},
         {Cell(job.cancelled ? "ending" : "running", job.cancelled ? Tone::Warn : Tone::Plain), Cell(job.name),
          job.fraction < 0 ? Cell() : Cell(QString("%1 %").arg(static_cast<int>(job.fraction * 100)), job.fraction),
          Cell(seconds_text(job.seconds), job.seconds), Cell(), Cell(job.at, Tone::Dim)}});
  for (const EndedJob& job : ended) {
    const Cell outcome = job.outcome == EndedJob::Outcome::Done     ? Cell("done", Tone::Dim)
                         : job.outcome == EndedJob::Outcome::Failed ? Cell("failed", Tone::Bad)
                                                                    : Cell("cancelled", Tone::Warn);
    rows.push_back({{},
                    {outcome, Cell(job.name), Cell(), Cell(seconds_text(job.seconds), job.seconds),
                     Cell(job.at.toString("hh:mm:ss"), Tone::Dim), Cell(job.problem)}});
  }
  return rows;
}

JobsView::JobsView(QWidget* parent)
    : TablePanel({tr("State"), tr("Job"), tr("Progress"), tr("Time"), tr("Ended"), tr("Detail")}, parent) {
  view()->setAccessibleName(tr("Jobs"));
  cancel_ = button_of(
      tr("Cancel"), this,
      [this] {
        if (const int row = chosen(); row >= 0) Q_EMIT cancel_asked(running_[static_cast<std::size_t>(row)]);
      },
      tr("Cancel the chosen job, or the only one; Ctrl+. cancels all"));
  bar()->addWidget(cancel_);
  set_jobs({}, {});
}

int JobsView::chosen() const {
  const std::vector<int> rows = chosen_rows();
  if (!rows.empty() && rows.front() < static_cast<int>(running_.size())) return rows.front();
  return running_.size() == 1 ? 0 : -1;
}

void JobsView::set_jobs(const std::vector<JobRow>& running, const std::deque<EndedJob>& ended) {
  const int row = chosen();
  const int id = row >= 0 && !chosen_rows().empty() ? running_[static_cast<std::size_t>(row)] : 0;
  const bool first = model()->rowCount() == 0;
  running_.clear();
  for (const JobRow& job : running) running_.push_back(job.id);
  set_rows(job_rows(running, ended), !first);
  if (const auto kept = std::ranges::find(running_, id); kept != running_.end())
    choose_rows({static_cast<int>(kept - running_.begin())});
  cancel_->setEnabled(!running_.empty());
}

}  // namespace partita::views
