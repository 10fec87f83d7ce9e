#include "views/tensor/values_controller.h"

#include <algorithm>

#include "core/base/mapped.h"
#include "core/base/whereabouts.h"
#include "core/compare/side_values.h"
#include "views/compare/compare_controller.h"
#include "views/frame/workbench.h"
#include "views/look/format.h"

namespace partita::views {

extern const MakeView make_values_view = make_view<ValuesController>;

ValuesController::ValuesController(Workbench& bench) : WidgetController(bench) {
  auto& comparison = bench.views().get<CompareController>();
  connect(view_, &TensorView::slice_asked, this, &ValuesController::ask_slice);
  connect(comparison.view(), &CompareView::values_asked, this, &ValuesController::look_at);
  connect(comparison.view(), &CompareView::node_chosen, this, [this](const QString& row) {
    if (on_screen()) look_at(row);
  });
  connect(&comparison, &CompareController::ended, this, [this, &comparison](bool with_report) {
    const auto& rows = comparison.view()->table()->model()->rows();
    if (!std::exchange(wanted_, false)) return;
    if (with_report && !rows.empty()) return look_at(rows.front().node);
    view_->set_note(tr("Nothing was compared"));
  });
  connect(&bench.jobs(), &JobTracker::finished, this, [this](int id) {
    if (id == job_ && !view_->pair()) view_->set_note(tr("cancelled"));
  });
  bench.window().add_command("Graph", tr("Look at the values"), QKeySequence("Ctrl+E"), [this] { go(); });
}

void ValuesController::show() {
  auto& comparison = bench_.views().get<CompareController>();
  QString row = comparison.view()->table()->current_node();
  if (row.isEmpty()) row = bench_.selection().spot().node;
  if (!row.isEmpty()) return look_at(row);
  wanted_ = true;
  raise();
  comparison.show();
}

namespace {

/// A pair of the first side with each other that has values of the same sizes.
Result<RowValues> pairs_of(const QString& name, const std::vector<SideValue>& sides, const Tolerance& tolerance,
                           const Progress& progress) {
  RowValues out;
  const SideValue& reference = sides.front();
  if (!reference.value) return unsupported("compare.value", reference.name + ": " + reference.why_no_value);
  std::optional<Diagnostic> refused;
  for (const SideValue& side : std::span(sides).subspan(1)) {
    std::string why = side.why_no_value;
    if (side.value) {
      auto pair = make_tensor_pair(name, *reference.value, *side.value, tolerance, progress);
      if (pair) {
        pair->expected_name = text(reference.name);
        pair->found_name = text(side.name);
        out.pairs.push_back(std::make_shared<const TensorPair>(*std::move(pair)));
        continue;
      }
      if (pair.error().fault == Fault::Cancelled) return pair.error();
      refused = pair.error();
      why = refused->line();
    }
    QString line = QObject::tr("%1: %2").arg(text(side.name), text(why));
    if (side.statistics) line += "; " + text(statistics_text(*side.statistics));
    out.without << line;
  }
  if (!out.pairs.empty()) return out;
  if (refused) return *refused;
  return unsupported("compare.value", out.without.join("; ").toStdString());
}

}  // namespace

void ValuesController::look_at(const QString& name) {
  const Document* document = bench_.documents().current_graph();
  if (!document || name.isEmpty()) return;
  raise();
  auto& comparison = bench_.views().get<CompareController>();
  comparison.select(name);
  const CompareRequest request = comparison.request_of(*document);
  const WorkbenchTools& tools = bench_.tools();
  // Without a comparison, the graph on the screen is asked for what is chosen there.
  const ComparedRow row = comparison.view()->row_of(name).value_or(ComparedRow{{}, name.toStdString()});
  std::vector<std::string> names{request.expected};
  names.insert(names.end(), request.found.begin(), request.found.end());
  const auto sides = mapped(names, [&](const std::string& side) { return tools.find_backend(text(side)); });
  const bool plain = row.graph.empty() && std::ranges::find(sides, nullptr) == sides.end();
  if (!plain && !tools.values)
    return view_->set_note(tr("Values are computed again for backends without options only"));
  if (!view_->pair()) view_->set_note(tr("Computing %1…").arg(name));
  job_ = bench_.jobs().start<RowValues>(
      tr("Values of %1").arg(name), "values", this,
      [=, graph = document->graph, artefact = document->artefact, inputs_of = tools.inputs,
       values_of_flow = tools.values](const Progress& progress) -> Result<RowValues> {
        std::vector<SideValue> values;
        if (plain) {
          progress.at(-1, "inputs");
          auto copy = graph->clone();
          TRY(std::vector<Value> inputs, inputs_of(*copy, artefact, text(request.inputs)));
          for (std::size_t i = 0; i < sides.size(); ++i) {
            progress.at(-1, "running " + names[i]);
            auto value = value_of(*copy, inputs, sides[i]->runner(progress), row.name);
            if (!value && !is_death(value.error())) return value.error();
            values.push_back(side_value(names[i], std::move(value)));
          }
        } else {
          TRY(values, values_of_flow(artefact, request, row.graph, row.name, progress));
        }
        return pairs_of(name, values, request.tolerance, progress);
      },
      [this, key = document->key, title = tr("%1 of %2").arg(name, document->title)](Result<RowValues> made) {
        job_ = 0;
        if (document_ != key) return;
        bench_.window().name_page(view_, title);
        if (!made) return view_->set_note(text(made.error().line()));
        view_->set_values(*std::move(made));
      });
}

void ValuesController::set_document(const Document& document) {
  if (std::exchange(document_, document.key) == document.key) return;
  wanted_ = false;
  view_->set_note({});
  bench_.window().name_page(view_, {});
  if (on_screen()) bench_.window().close_page();
}

void ValuesController::ask_slice(const Slice& slice) {
  auto pairs = view_->pairs();
  using Made = std::shared_ptr<const std::vector<Grid>>;
  bench_.jobs().start<Made>(
      tr("Slice of %1").arg(pairs.front()->name), "slice", this,
      [pairs, slice](const Progress& progress) -> Result<Made> {
        constexpr int most = TensorView::kMostCells;
        const auto all = mapped(pairs, [](const auto& pair) -> const TensorPair* { return pair.get(); });
        TRY(std::vector<Grid> grids, make_grids(all, slice, most, most, progress));
        return std::make_shared<const std::vector<Grid>>(std::move(grids));
      },
      [this, slice, pairs](Result<Made> grids) {
        if (view_->pairs() != pairs) return;
        if (grids) return view_->set_grids(slice, *grids);
        bench_.window().report(grids.error());
      });
}

}  // namespace partita::views
