#pragma once
#include <set>

#include "views/frame/controller.h"
#include "views/profile/profile_view.h"

namespace partita::views {

/// Joins a profile of the user's own run to the log that is open, and gives its times to the nodes of the log's graphs.
class ProfileController : public WidgetController<ProfileView> {
 public:
  explicit ProfileController(Workbench& bench);
  void show() override;
  QStringList command() const override;
  void set_document(const Document& document) override { time_nodes(document); }
  void select(const QString& node) override;

  /// Reads a profile of the file that the document on the screen is of; `steps` as steps_of() takes them.
  void open(const QString& profile, const QString& steps = {});

 private:
  void ask_file();
  void take(const QString& path, const QString& profile, std::shared_ptr<const MeasuredRun> run, StepRange steps);
  /// Gives the current document's nodes their times, as a job.
  void time_nodes(const Document& document);
  void choose(int row);
  void go_to(int row);
  const ProfileRow* row_at(int row) const;

  QString path_, profile_;  ///< the log and the profile; empty: none
  std::shared_ptr<const MeasuredRun> run_;
  std::vector<ProfileRow> rows_;  ///< of the table
  bool choosing_ = false;         ///< the selection comes from the table, or goes there
  std::set<QString> timed_;       ///< keys of documents whose nodes have the times of the chosen steps
};

}  // namespace partita::views
