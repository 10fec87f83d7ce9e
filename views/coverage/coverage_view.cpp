#include "views/coverage/coverage_view.h"

#include "core/ops/family.h"
#include "core/ops/record.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

struct Aspect {
  const char* name;
  bool (*has)(const OpRecord&);
};
constexpr Aspect kAspects[] = {
    {"Fake", [](const OpRecord& r) { return r.fake || r.pointwise.body; }},
    {"Eval", [](const OpRecord& r) { return r.eval || r.pointwise.body || r.decompose; }},
    {"Derivative",
     [](const OpRecord& r) { return !r.derivative.empty() || r.gradient || r.not_differentiable || r.decompose; }},
    {"Decompose", [](const OpRecord& r) { return r.decompose || r.compile_decompose; }},
    {"Lower", [](const OpRecord& r) { return r.lower || r.pointwise.body || r.decompose || r.compile_decompose; }},
};

}  // namespace

std::vector<Row> coverage_rows() {
  std::vector<Row> rows;
  for (const OpRecord* record : ops().all()) {
    Row row;
    row.cells.emplace_back(text(record->schema->name));
    row.cells.emplace_back(text(family_name(family_of(Op::torch(record->schema->name)))), Tone::Dim);
    for (const Aspect& aspect : kAspects) {
      bool has = aspect.has(*record);
      row.cells.emplace_back(has ? QString::fromUtf8("●") : QString::fromUtf8("○"), has ? 1.0 : 0.0,
                             has ? Tone::Good : Tone::Dim);
    }
    QStringList notes;
    if (record->expensive) notes << "never recomputed";
    if (record->random) notes << "random";
    if (record->side_effect) notes << "side effect";
    row.cells.emplace_back(notes.join(", "), Tone::Dim);
    rows.push_back(std::move(row));
  }
  return rows;
}

CoverageView::CoverageView(QWidget* parent)
    : TablePanel({tr("Operator"), tr("Family"), kAspects[0].name, kAspects[1].name, kAspects[2].name, kAspects[3].name,
                  kAspects[4].name, tr("Notes")},
                 parent) {}

}  // namespace partita::views
