#include "views/coverage/coverage_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ops/facts/aspects.h"
#include "core/ops/facts/family.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

QStringList titles() {
  QStringList out{CoverageView::tr("Operator"), CoverageView::tr("Family")};
  for (const OpAspect& aspect : op_aspects()) {
    out << text(aspect.name);
    out.back()[0] = out.back()[0].toUpper();
  }
  return out << CoverageView::tr("Notes");
}

}  // namespace

std::vector<Row> coverage_rows() {
  std::vector<Row> rows;
  for (const OpRecord* record : ops().all()) {
    Row row;
    row.cells.emplace_back(text(record->schema->name));
    row.cells.emplace_back(text(family_name(family_of(Op::torch(record->schema->name)))), Tone::Dim);
    for (const OpAspect& aspect : op_aspects()) {
      const std::string_view state = aspect.state(*record);
      row.cells.emplace_back(text(state), state.empty() ? 0.0 : 1.0,
                             state == "own" || state == "library" ? Tone::Good : Tone::Dim);
    }
    row.cells.emplace_back(text(fmt::format("{}", fmt::join(op_tags(*record), ", "))), Tone::Dim);
    rows.push_back(std::move(row));
  }
  return rows;
}

CoverageView::CoverageView(QWidget* parent) : TablePanel(titles(), parent) {}

}  // namespace partita::views
