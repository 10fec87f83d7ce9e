#pragma once
#include "views/table/table_panel.h"

namespace partita::views {

/// What each operator has: a row for every record, a column for each aspect, as `partita ops` prints them.
std::vector<Row> coverage_rows();

class CoverageView : public TablePanel {
  Q_OBJECT

 public:
  explicit CoverageView(QWidget* parent = nullptr);
};

}  // namespace partita::views
