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
    const QString value = text(known.text(config)), usual = text(known.text(Config()));
    row.cells.emplace_back(
        differs ? QObject::tr("%1, by default %2").arg(value, usual.isEmpty() ? "none" : usual) : value,
        differs ? Tone::Warn : Tone::Plain);
    std::string meaning = fmt::format("{} ({})", known.help, known.takes());
    if (known.use == ConfigUse::Code) meaning += ". Decides code.";
    row.cells.emplace_back(text(meaning));
    rows.push_back(std::move(row));
  }
  return rows;
}

ConfigView::ConfigView(QWidget* parent) : TablePanel({tr("Name"), tr("Value"), tr("Meaning")}, parent) {
  set_wrapped_column(2);
}

}  // namespace partita::views
