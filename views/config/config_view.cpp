#include "views/config/config_view.h"

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
    row.cells.emplace_back(differs ? QString::fromUtf8("●") : QString(), differs ? 1.0 : 0.0, Tone::Warn);
    row.cells.emplace_back(known.use == ConfigUse::Code ? QString::fromUtf8("●") : QString(),
                           known.use == ConfigUse::Code ? 1.0 : 0.0);
    row.cells.emplace_back(text(known.help));
    row.cells.emplace_back(text(known.takes()), Tone::Dim);
    rows.push_back(std::move(row));
  }
  return rows;
}

ConfigView::ConfigView(QWidget* parent)
    : TablePanel({tr("Name"), tr("Value"), tr("Default"), tr("Changed"), tr("In the key"), tr("Meaning"), tr("Takes")},
                 parent) {}

}  // namespace partita::views
