#pragma once

#include <QWidget>

#include "views/look/elided_label.h"
#include "views/table/table_model.h"
#include "views/timeline/timeline_plot.h"

class QPushButton;

namespace partita::views {

class TablePanel;

/// A row for each step, whose "node" is its name.
std::vector<Row> timeline_rows(const Timeline& timeline);

/// Where the time of compiling went: a time line that zooms, and a table of its steps, the one with the most time of
/// its own first.
class TimelineView : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);
  void set_timeline(std::shared_ptr<const Timeline> timeline);
  void set_note(const QString& note);  ///< in place of a time line
  TimelinePlot* plot() { return plot_; }
  TablePanel* table() { return table_; }
  QString summary() const { return summary_->text(); }
  QString readout() const { return readout_->text(); }  ///< what the chosen step is

 Q_SIGNALS:
  void record_asked(QString id);  ///< of the log, that the chosen step is in

 private:
  void choose(int span);

  TimelinePlot* plot_;
  TablePanel* table_;
  ElidedLabel *summary_, *readout_;
  QPushButton* graph_;
};

}  // namespace partita::views
