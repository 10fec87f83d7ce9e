#pragma once
#include "core/base/config.h"
#include "views/table/table_panel.h"

namespace partita::views {

/// A row for every name of the configuration; values that are not at their default stand out.
std::vector<Row> config_rows(const Config& config);

class ConfigView : public TablePanel {
  Q_OBJECT

 public:
  explicit ConfigView(QWidget* parent = nullptr);
};

}  // namespace partita::views
