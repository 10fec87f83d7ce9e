#pragma once

#include <QWidget>

#include "views/look/elided_label.h"
#include "views/ranks/ladder_plot.h"

class QPushButton;

namespace partita::views {

/// The ladder of a job's ranks, with a line for all of it and one for the chosen rung.
class RanksView : public QWidget {
  Q_OBJECT

 public:
  explicit RanksView(QWidget* parent = nullptr);
  void set_ladder(std::shared_ptr<const RankLadder> ladder);
  void set_note(const QString& note);  ///< in place of a ladder
  LadderPlot* plot() { return plot_; }
  QString summary() const { return summary_->text(); }
  QString readout() const { return readout_->text(); }  ///< what the chosen rung is

 private:
  void tell_chosen();

  LadderPlot* plot_;
  ElidedLabel *summary_, *readout_;
  QPushButton *wrong_, *node_;
};

}  // namespace partita::views
