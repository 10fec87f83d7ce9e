#include "views/ranks/ranks_view.h"

#include "views/look/arrange.h"
#include "views/look/format.h"

namespace partita::views {

RanksView::RanksView(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Ranks"));
  auto* layout = plain_column(this);
  auto* bar = command_bar(layout);
  plot_ = new LadderPlot;
  summary_ = new ElidedLabel;
  wrong_ = button_of(tr("Next mismatch"), plot_, &LadderPlot::choose_next_wrong,
                     tr("To the next collective that does not match"));
  bar->addWidget(summary_, 1);
  bar->addWidget(wrong_);
  layout->addWidget(plot_, 1);
  auto* below = command_bar(layout);
  readout_ = new ElidedLabel;
  node_ = button_of(
      tr("Its node"), this, [this] { Q_EMIT plot_->activated(); },
      tr("Show the call in the graph of the chosen lane's first rank (Enter)"));
  below->addWidget(readout_, 1);
  below->addWidget(node_);
  connect(plot_, &LadderPlot::chosen, this, &RanksView::tell_chosen);
  setFocusProxy(plot_);
  set_note({});
}

void RanksView::set_ladder(std::shared_ptr<const RankLadder> ladder) {
  summary_->setText(text(ladder->summary()));
  wrong_->setEnabled(ladder->wrong() > 0);
  plot_->set_ladder(std::move(ladder));
  if (wrong_->isEnabled()) plot_->choose_next_wrong();
  tell_chosen();
}

void RanksView::set_note(const QString& note) {
  plot_->set_ladder(nullptr);
  wrong_->setEnabled(false);
  summary_->setText(note);
  tell_chosen();
}

void RanksView::tell_chosen() {
  const RankLadder* ladder = plot_->ladder();
  const GraphCollective* call = nullptr;
  if (!ladder || plot_->row() < 0) {
    readout_->setText(tr("Arrows walk, Enter goes to the node; an open circle: a rank that never starts it"));
  } else {
    const RankLadder::Row& row = ladder->rows[static_cast<std::size_t>(plot_->row())];
    const std::size_t lane = static_cast<std::size_t>(plot_->lane());
    call = ladder->call(row, lane);
    const Rung& rung = ladder->ladder.rungs[row.rung];
    QString said = text(ladder->lane_name(lane)) + ": ";
    if (call)
      said += tr("%1 at %2").arg(text(rung.text), text(place_of(*call)));
    else
      said += row.lanes[lane].part == RankLadder::Part::Missing ? tr("never starts %1").arg(text(rung.text))
                                                                : tr("not in group %1").arg(text(rung.group));
    if (!rung.wrong.empty()) said += "; " + text(rung.wrong);
    readout_->setText(said);
  }
  node_->setEnabled(call != nullptr);
}

}  // namespace partita::views
