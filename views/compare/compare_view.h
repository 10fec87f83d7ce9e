#pragma once
#include <QWidget>

#include "core/compare/compare.h"
#include "views/graph/overlay.h"
#include "views/look/inputs_box.h"
#include "views/table/table_panel.h"

class QCheckBox;
class QComboBox;
class QPushButton;

namespace partita::views {

class ElidedLabel;

struct CompareRequest {
  QString expected, found;  ///< backends
  bool per_node = true;
  Tolerance tolerance;
  QString inputs;  ///< path of an IO file; empty: the archive's samples, else made up
};

/// Copies what a row of a report says about its node.
void note_error(NodeFacts& facts, const Difference& difference, const Tolerance& tolerance);

QString verdict_of(const Difference& difference);  ///< "agrees", "rounding", "differs", "inherited", "died"

/// Rows of a report, worst first: where a backend's process died, wrong layouts, then wrong values by error over
/// tolerance.
std::vector<Row> report_rows(const Report& report, const Tolerance& tolerance);

/// Chooses two backends and inputs, and lists what differs per output and per node.
class CompareView : public QWidget {
  Q_OBJECT

 public:
  explicit CompareView(QWidget* parent = nullptr);
  /// `found`: the backend that is compared with the first one, until another is chosen.
  void set_backends(const QStringList& names, const QString& found);
  InputsBox* inputs() { return inputs_; }
  CompareRequest request() const;
  /// `first_wrong`: the first row in graph order that differs; empty: none does.
  void set_report(const Report& report, const Tolerance& tolerance, const QString& summary, const QString& first_wrong);
  void set_note(const QString& note);  ///< in place of the summary
  void clear(const QString& note = {});
  void select(const QString& node);
  TablePanel* table() { return table_; }

 Q_SIGNALS:
  void run_asked(const partita::views::CompareRequest& request);
  void node_chosen(QString node);
  void values_asked(QString row);  ///< Enter or a double click on a row

 private:
  QComboBox *expected_, *found_;
  QCheckBox* per_node_;
  InputsBox* inputs_;
  ElidedLabel* summary_;
  QPushButton *first_wrong_, *values_;
  QString first_wrong_name_;
  TablePanel* table_;
};

}  // namespace partita::views
