#include "views/timeline/timeline_view.h"

#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/table/table_panel.h"

namespace partita::views {

std::vector<Row> timeline_rows(const Timeline& timeline) {
  double all = 0;
  for (const TimelineStep& step : timeline.steps) all += step.self_seconds;
  std::vector<Row> rows;
  for (const TimelineStep& step : timeline.steps) {
    const double share = all > 0 ? step.self_seconds / all : 0;
    rows.push_back(
        {text(step.name),
         {Cell(text(step.name)), Cell(seconds_text(step.self_seconds), step.self_seconds),
          Cell(seconds_text(step.seconds), step.seconds, Tone::Dim), Cell(QString::number(step.count), step.count),
          Cell(QString("%1 %").arg(100 * share, 0, 'f', 1), share)}});
  }
  return rows;
}

TimelineView::TimelineView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Times of compiling"));
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  plot_ = new TimelinePlot;
  summary_ = new ElidedLabel;
  bar->addWidget(summary_, 1);
  add_all(bar, {button_of(tr("All"), plot_, &TimelinePlot::fit, tr("The whole time line (F)")),
                button_of(
                    tr("Step"), plot_, [this] { plot_->zoom_to(plot_->chosen()); },
                    tr("Zoom to the chosen step (Enter, or a double click on it)"))});
  auto* below = new QWidget;
  auto* column = plain_column(below);
  auto* chosen = command_bar(column);
  readout_ = new ElidedLabel;
  graph_ = button_of(
      tr("Its graph"), this,
      [this] { Q_EMIT record_asked(text(plot_->timeline()->spans[static_cast<std::size_t>(plot_->chosen())].record)); },
      tr("Show the graph of the compilation that the chosen step is part of"));
  chosen->addWidget(readout_, 1);
  chosen->addWidget(graph_);
  table_ = new TablePanel({tr("Step"), tr("Own"), tr("Whole"), tr("Times"), tr("Share")});
  column->addWidget(table_, 1);
  layout->addWidget(split_of({plot_, below}, {440, 220}, Qt::Vertical), 1);
  connect(plot_, &TimelinePlot::span_chosen, this, &TimelineView::choose);
  connect(table_, &TablePanel::node_chosen, plot_, &TimelinePlot::highlight);
  connect(table_, &TablePanel::node_activated, this, [this](const QString& name) {
    for (const TimelineStep& step : plot_->timeline()->steps)
      if (text(step.name) == name) {
        plot_->zoom_to(step.longest);
        plot_->choose(step.longest);
        choose(step.longest);
      }
  });
  setFocusProxy(plot_);
  choose(-1);
}

void TimelineView::set_timeline(std::shared_ptr<const Timeline> timeline) {
  summary_->setText(text(timeline->summary()));
  table_->set_rows(timeline_rows(*timeline));
  plot_->set_timeline(std::move(timeline));
  choose(-1);
}

void TimelineView::set_note(const QString& note) {
  plot_->set_timeline(nullptr);
  table_->set_rows({});
  choose(-1);
  summary_->setText(note);
}

void TimelineView::choose(int span) {
  const TimelineSpan* chosen = span < 0 ? nullptr : &plot_->timeline()->spans[static_cast<std::size_t>(span)];
  graph_->setEnabled(chosen && !chosen->compilation.empty());
  if (!chosen) return readout_->setText(tr("Wheel zooms, drag pans, arrows walk; yellow: most time of its own"));
  readout_->setText(span_text(*chosen) + (chosen->about.empty() ? "" : "; " + text(chosen->about)));
  if (!chosen->instant) table_->select_node(text(chosen->name));
  plot_->highlight({});
}

}  // namespace partita::views
