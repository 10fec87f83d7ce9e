#pragma once

#include <QWidget>
#include <optional>
#include <string>
#include <unordered_map>

#include "app/tasks/columns.h"
#include "core/compare/compare.h"
#include "core/ir/graph.h"
#include "views/look/elided_label.h"
#include "views/look/inputs_box.h"
#include "views/picture/overlay.h"
#include "views/table/table_panel.h"

class QCheckBox;
class QComboBox;
class QLineEdit;
class QMenu;
class QPushButton;

namespace partita::views {

/// A row of a report: the graph that it is about, as Report::graph has it, and its name there.
struct ComparedRow {
  std::string graph, name;
};

/// The node of the shown graph that stands for each row of these reports, which may be of graphs made from it: the one
/// of that name, else the last one of the same line of the user's program. Rows without one are left out.
std::unordered_map<std::string, std::string> shown_nodes(const Graph& shown, const std::vector<Report>& reports);

/// Copies what a row of a report says about its node.
void note_error(NodeFacts& facts, const Difference& difference, const Tolerance& tolerance);

/// Orders rows by "worst last": a death is worst, then wrong layouts, then NaNs and infinities on one side, then what
/// differs by its error, then what differs because an input did.
std::pair<int, double> badness(const Difference& difference);
QString verdict_of(const Difference& difference);  ///< "agrees", "alike", "rounding", "differs", "inherited", "died"

/// Rows of a report, worst first: where a backend's process died, wrong layouts, then wrong values by error over
/// tolerance.
std::vector<Row> report_rows(const Report& report, const Tolerance& tolerance, std::vector<ComparedRow>& keys);

/// Several reports with one expected side: a row for each of their rows, the first divergence first, and a column for
/// each report. `shown`: as shown_nodes() gives it. `keys` receives what each row is about.
std::vector<Row> table_rows(const std::vector<Report>& reports,
                            const std::unordered_map<std::string, std::string>& shown, std::vector<ComparedRow>& keys);

/// A comparison of the past that can be a column.
struct PastColumn {
  QString word, title;
};

/// Chooses what is compared and on which inputs, and lists what differs per output and per node.
class CompareView : public QWidget {
  Q_OBJECT

 public:
  explicit CompareView(QWidget* parent = nullptr);
  /// `found`: the backend that is compared with the first one, until another is chosen.
  void set_backends(const QStringList& names, const QString& found);
  void choose_columns(const QStringList& columns);  ///< what is compared with the reference
  InputsBox* inputs() { return inputs_; }
  CompareRequest request() const;
  void set_past(std::vector<PastColumn> past) { past_ = std::move(past); }
  /// `first_wrong`: the node of the first row in graph order that differs; empty: none does.
  void set_report(const std::vector<Report>& reports, const Tolerance& tolerance, const QString& summary,
                  const QString& first_wrong, const std::unordered_map<std::string, std::string>& shown = {});
  void set_note(const QString& note) { summary_->setText(note); }  ///< in place of the summary
  void clear(const QString& note = {});
  void select(const QString& node) { table_->select_node(node); }
  /// What this node's row is about: of several the chosen one, else the worst. Unset when nothing of it was compared.
  std::optional<ComparedRow> row_of(const QString& node) const;
  TablePanel* table() { return table_; }

 Q_SIGNALS:
  void run_asked(const partita::CompareRequest& request);
  void node_chosen(QString node);
  void values_asked(QString row);  ///< Enter or a double click on a row

 private:
  void offer_columns();

  QComboBox *expected_, *found_;
  QMenu* more_;  ///< columns to add
  std::vector<PastColumn> past_;
  QCheckBox *per_node_, *train_;
  QLineEdit *relative_, *absolute_;
  InputsBox* inputs_;
  ElidedLabel* summary_;
  QPushButton *first_wrong_, *values_;
  QString first_wrong_name_;
  std::vector<ComparedRow> keys_;  ///< of the table's rows
  TablePanel* table_;
};

}  // namespace partita::views
