#pragma once
#include "views/frame/controller.h"
#include "views/table/table_panel.h"

namespace partita::views {

/// The table of what the forward keeps for the backward, with what it would cost to compute it again.
class SavedTable : public TablePanel {
 public:
  explicit SavedTable(QWidget* parent = nullptr);
};

/// Rows of the table: saved values, then recomputed ones.
std::vector<Row> saved_value_rows(const CutSummary& cut, const Graph& graph, const UnknownBytes& unknown);

class SavedController : public WidgetController<SavedTable> {
 public:
  explicit SavedController(Workbench& bench);
  void wait_for(const Document&) override { view_->set_rows({}); }
  void set_document(const Document& document) override;
};

}  // namespace partita::views
