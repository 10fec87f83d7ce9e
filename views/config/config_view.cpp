#include "views/config/config_view.h"

#include <fmt/format.h>

#include "views/look/format.h"

namespace partita::views {

std::vector<Row> config_rows(const Config& config) {
  std::vector<Row> rows;
  for (const ConfigRow& known : partita::config_rows()) {
    const bool differs = known.differs(config);
    Row row;
    row.cells.emplace_back(text(known.name), differs ? Tone::Warn : Tone::Plain);
    row.cells.emplace_back(text(known.text(config)), differs ? Tone::Warn : Tone::Plain);
    row.cells.emplace_back(text(known.text(Config())), Tone::Dim);
    std::string meaning = fmt::format("{} ({})", known.help, known.takes());
    if (known.use == ConfigUse::Code) meaning += ". Decides code.";
    row.cells.emplace_back(text(meaning));
    rows.push_back(std::move(row));
  }
  return rows;
}

ConfigView::ConfigView(QWidget* parent)
    : TablePanel({tr("Name"), tr("Value"), tr("Default"), tr("Meaning")}, parent) {
  set_wrapped_column(3);
}

}  // namespace partita::views
