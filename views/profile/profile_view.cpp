#include "views/profile/profile_view.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "core/base/mapped.h"
#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/table/table_panel.h"

namespace partita::views {
namespace {

using CallKind = ProfiledCall::Kind;

Cell rate_cell(const StepTimes& times, const ProfileRow& row, double CallCost::* what) {
  const auto rate = row.call->cost && (*row.call->cost).*what > 0 ? times.rate((*row.call->cost).*what) : std::nullopt;
  if (!rate) return Cell(QString(), -1.0);
  return Cell((row.graph->assumed_sizes ? "~" : "") + amount_text(*rate), *rate);
}

}  // namespace

std::vector<ProfileRow> profile_calls(const ProfiledLog& log, StepRange steps) {
  std::vector<std::pair<double, ProfileRow>> timed;
  for (const ProfiledGraph& graph : log.graphs)
    for (const ProfiledCall& call : graph.calls)
      if (const StepTimes times = times_of(graph, call, steps); times.steps > 0)
        timed.push_back({times.median, {&graph, &call}});
  std::ranges::stable_sort(timed, std::greater(), &std::pair<double, ProfileRow>::first);
  return mapped(timed, &std::pair<double, ProfileRow>::second);
}

std::vector<Row> profile_rows(const ProfiledLog& log, StepRange steps) {
  const double whole = sum_of(log, steps).total;
  std::vector<Row> rows;
  for (const ProfileRow& row : profile_calls(log, steps)) {
    const ProfiledCall& call = *row.call;
    const StepTimes t = times_of(*row.graph, call, steps);
    const bool is_wrapper = call.kind == CallKind::Wrapper;
    const double share = whole > 0 && !(is_wrapper && log.profile->on_device) ? t.sum / whole : -1;
    const Tone tone = call.on_nodes() ? Tone::Plain : Tone::Dim;
    const QString kernel = is_wrapper ? QObject::tr("(the wrapper's own time)") : text(call.name);
    const std::vector<std::string>& nodes = call.nodes.empty() ? call.sources : call.nodes;
    QString line;
    if (!call.frames.empty()) {
      const StackFrame& frame = call.frames.front();
      line = QString("%1:%2").arg(text(frame.file.substr(frame.file.rfind('/') + 1))).arg(frame.line);
    }
    rows.push_back(
        {call.nodes.empty() ? QString() : text(call.nodes.back()),
         {Cell(seconds_text(t.median), t.median), Cell(seconds_text(t.least), t.least, Tone::Dim),
          Cell(seconds_text(t.most), t.most, Tone::Dim),
          share >= 0 ? Cell(QString("%1 %").arg(100 * share, 0, 'f', 1), share) : Cell(QString(), -1.0),
          is_wrapper ? Cell(QString(), -1.0) : Cell(QString::number(t.calls), t.calls),
          rate_cell(t, row, &CallCost::bytes), rate_cell(t, row, &CallCost::operations), Cell(kernel, tone),
          Cell(text(row.graph->name)), Cell(line), Cell(text(fmt::format("{}", fmt::join(nodes, ", "))), Tone::Dim)}});
  }
  return rows;
}

ProfileView::ProfileView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Measured run"));
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  strip_ = new StepStrip;
  summary_ = new ElidedLabel;
  bar->addWidget(summary_, 1);
  add_all(bar, {button_of(tr("All steps"), strip_, &StepStrip::choose_all, tr("Choose all steps (A)")),
                button_of(
                    tr("Open a profile…"), this, [this] { Q_EMIT open_asked(); },
                    tr("What export_chrome_trace of torch.profiler wrote of the run of this log"))});
  layout->addWidget(strip_);
  notes_ = styled_label("dim");
  notes_->setWordWrap(true);
  notes_->setContentsMargins(12, 4, 12, 4);
  notes_->setTextFormat(Qt::PlainText);
  notes_->hide();
  layout->addWidget(notes_);
  table_ = new TablePanel({tr("Time"), tr("Least"), tr("Most"), tr("Share"), tr("Calls"), tr("B/s"), tr("op/s"),
                           tr("Kernel"), tr("Graph"), tr("Line"), tr("Nodes")});
  layout->addWidget(table_, 1);
  connect(strip_, &StepStrip::changed, this, [this] {
    show_steps();
    Q_EMIT steps_changed();
  });
  connect(table_, &TablePanel::row_chosen, this, &ProfileView::call_chosen);
  connect(table_, &TablePanel::row_activated, this, &ProfileView::call_activated);
  setFocusProxy(strip_);
}

void ProfileView::set_run(std::shared_ptr<const MeasuredRun> run) {
  run_ = std::move(run);
  const Profile& profile = *run_->log.profile;
  std::vector<StepStrip::Bar> bars;
  for (std::size_t s = 0; s < profile.steps.size(); ++s) {
    const Profile::Step& step = profile.steps[s];
    const auto seconds = [&](std::int64_t at) { return 1e-9 * static_cast<double>(at - profile.steps.front().begin); };
    bars.push_back({text(step.name), seconds(step.begin), seconds(step.end), sum_of(run_->log, {s, s + 1}).total});
  }
  strip_->set_steps(std::move(bars));
  QStringList notes = texts(run_->log.notes);
  if (std::ranges::any_of(run_->log.graphs, &ProfiledGraph::assumed_sizes))
    notes << tr("~: by the sizes that the graph was compiled for; it takes others, too");
  notes_->setText(notes.join("\n"));
  notes_->setVisible(!notes.empty());
  show_steps();
}

void ProfileView::show_steps() {
  if (!run_) return;
  const StepRange steps = strip_->chosen();
  summary_->setText(text(partita::summary(run_->log, steps)));
  table_->set_rows(profile_rows(run_->log, steps));
}

void ProfileView::set_note(const QString& note) {
  run_ = nullptr;
  strip_->set_steps({});
  table_->set_rows({});
  notes_->hide();
  summary_->setText(note);
}

}  // namespace partita::views
