#pragma once
#include "views/table/table_panel.h"

namespace partita::views {

/// Who has what: a row for every operator record, a column for each aspect (`partita ops` prints the same).
std::vector<Row> coverage_rows();

class CoverageView : public TablePanel {
  Q_OBJECT

 public:
  explicit CoverageView(QWidget* parent = nullptr);
};

}  // namespace partita::views
