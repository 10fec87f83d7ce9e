#pragma once

#include <QWidget>

#include "app/tasks/joined_profile.h"
#include "views/look/elided_label.h"
#include "views/profile/step_strip.h"
#include "views/table/table_model.h"

class QLabel;

namespace partita::views {

class TablePanel;

/// A profile joined to the log of a file.
struct MeasuredRun {
  std::shared_ptr<const Loaded> loaded;  ///< `log` points into it
  ProfiledLog log;
};

/// A call of a compiled graph, as a row of the table.
struct ProfileRow {
  const ProfiledGraph* graph = nullptr;
  const ProfiledCall* call = nullptr;
};
/// Those that ran in the steps, the longest first.
std::vector<ProfileRow> profile_calls(const ProfiledLog& log, StepRange steps);
std::vector<Row> profile_rows(const ProfiledLog& log, StepRange steps);

/// The user's own run: its steps, of which some are chosen, and what compiled graphs called in these.
class ProfileView : public QWidget {
  Q_OBJECT

 public:
  explicit ProfileView(QWidget* parent = nullptr);
  void set_run(std::shared_ptr<const MeasuredRun> run);
  void set_note(const QString& note);  ///< in place of a run
  StepStrip* strip() { return strip_; }
  TablePanel* table() { return table_; }
  QString summary() const { return summary_->text(); }

 Q_SIGNALS:
  void open_asked();
  void steps_changed();
  void call_chosen(int row);     ///< of profile_calls() of the chosen steps
  void call_activated(int row);  ///< the same

 private:
  void show_steps();

  std::shared_ptr<const MeasuredRun> run_;
  StepStrip* strip_;
  TablePanel* table_;
  ElidedLabel* summary_;
  QLabel* notes_;
};

}  // namespace partita::views
