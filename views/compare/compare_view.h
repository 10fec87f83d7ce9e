#pragma once
#include <QWidget>

#include "core/compare/compare.h"
#include "views/table/table_panel.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QPushButton;

namespace partita::views {

struct CompareRequest {
  QString expected, found;  ///< backends
  bool per_node = true;
  Tolerance tolerance;
  QString inputs;  ///< path of an IO file; empty: the archive's samples, else made up
};

/// Rows of a report, worst first: wrong layouts, then wrong values by error over tolerance.
std::vector<Row> report_rows(const Report& report, const Tolerance& tolerance);

/// Run and compare: which backends on which inputs, and what differs, per output and per node.
class CompareView : public QWidget {
  Q_OBJECT

 public:
  explicit CompareView(QWidget* parent = nullptr);
  void set_backends(const QStringList& names);
  void set_inputs(const QString& path);
  CompareRequest request() const;
  void set_report(const Report& report, const Tolerance& tolerance, const QString& summary);
  void clear(const QString& note = {});
  void set_theme(const Theme& theme);
  void select(const QString& node);
  TablePanel* table() { return table_; }

 Q_SIGNALS:
  void run_asked(const partita::views::CompareRequest& request);
  void node_chosen(QString node);

 private:
  QComboBox *expected_, *found_;
  QCheckBox* per_node_;
  QLabel *inputs_label_, *summary_;
  QString inputs_;
  TablePanel* table_;
};

}  // namespace partita::views
