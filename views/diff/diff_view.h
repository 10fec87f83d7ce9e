#pragma once

#include <QCheckBox>
#include <QWidget>

#include "core/diff/diff.h"
#include "views/look/elided_label.h"
#include "views/table/table_panel.h"

class QMenu;

namespace partita::views {

/// Heading and rows of a diff, a column for each run. `shown` receives the difference of each row; those that follow
/// from others are left out unless `all`.
QStringList diff_columns(const Diff& diff);
std::vector<Row> diff_rows(const Diff& diff, bool all, std::vector<const DiffRow*>& shown);

/// What differs between runs, the most telling first. A click on a run's cell asks for its node.
class DiffView : public QWidget {
  Q_OBJECT

 public:
  explicit DiffView(QWidget* parent = nullptr);
  void set_files(const QStringList& paths);  ///< that are open; new ones are chosen
  QStringList chosen_files() const;
  void set_diff(std::shared_ptr<const Diff> diff);
  void set_note(const QString& note);                         ///< in place of a diff
  void say(const QString& note) { summary_->setText(note); }  ///< beside the diff, until refresh()
  void refresh();
  bool shows_all() const { return all_->isChecked(); }  ///< also what follows from others
  TablePanel* table() { return table_; }
  QString summary() const { return summary_->text(); }

 Q_SIGNALS:
  void asked();
  /// Of a run: the path that was opened, the graph's id, and the node, which may be empty.
  void place_chosen(QString path, QString graph, QString node);

 private:
  void choose(const QModelIndex& index);

  std::shared_ptr<const Diff> diff_;
  std::vector<const DiffRow*> shown_;
  QMenu* files_menu_;
  QCheckBox* all_;
  ElidedLabel* summary_;
  TablePanel* table_;
};

}  // namespace partita::views
