#include "views/tensor/values_controller.h"

#include "views/compare/compare_controller.h"
#include "views/look/format.h"
#include "views/window/workbench.h"

namespace partita::views {

std::unique_ptr<Controller> make_values_view(Workbench& bench) {
  return std::make_unique<ValuesController>(bench);
}

ValuesController::ValuesController(Workbench& bench) : WidgetController(bench) {
  auto& comparison = bench.get<CompareController>();
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
  bench.window().add_command("Graph", tr("Look at the values"), QKeySequence("Ctrl+E"), [this] { show(); });
}

void ValuesController::show() {
  auto& comparison = bench_.get<CompareController>();
  QString row = comparison.view()->table()->current_node();
  if (row.isEmpty()) row = bench_.selection().spot().node;
  if (!row.isEmpty()) return look_at(row);
  wanted_ = true;
  raise();
  comparison.show();
}

void ValuesController::look_at(const QString& name) {
  const Document* document = bench_.current_graph();
  if (!document || name.isEmpty()) return;
  raise();
  auto& comparison = bench_.get<CompareController>();
  comparison.select(name);
  CompareRequest request = comparison.request_of(*document);
  const WorkbenchTools& tools = bench_.tools();
  // Of several columns the first that is a backend as it is: only those are computed again here.
  const WorkbenchTools::BackendChoice *expected = tools.find_backend(request.expected), *found = nullptr;
  for (const QString& column : request.columns())
    if (!found && (found = tools.find_backend(column))) request.found = column;
  if (!expected || !found) return view_->set_note(tr("Values are computed again for backends without options only"));
  if (!view_->pair()) view_->set_note(tr("Computing %1…").arg(name));
  using Made = std::shared_ptr<const TensorPair>;
  job_ = bench_.jobs().start<Made>(
      tr("Values of %1").arg(name), "values", this,
      [=, graph = document->graph, artefact = document->artefact,
       inputs_of = tools.inputs](const Progress& progress) -> Result<Made> {
        progress.at(-1, "inputs");
        auto copy = graph->clone();
        TRY(std::vector<Value> inputs, inputs_of(*copy, artefact, request.inputs));
        std::string row = name.toStdString();
        progress.at(-1, "running " + request.expected.toStdString());
        TRY(const Value a, value_of(*copy, inputs, expected->runner(progress), row));
        progress.at(-1, "running " + request.found.toStdString());
        TRY(const Value b, value_of(*copy, inputs, found->runner(progress), row));
        TRY(TensorPair pair, make_tensor_pair(name, a, b, request.tolerance, progress));
        pair.expected_name = request.expected;
        pair.found_name = request.found;
        return std::make_shared<const TensorPair>(std::move(pair));
      },
      [this, key = document->key, title = tr("%1 of %2").arg(name, document->title)](Result<Made> made) {
        job_ = 0;
        if (document_ != key) return;
        bench_.window().name_page(view_, title);
        if (!made) return view_->set_note(text(made.error().line()));
        view_->set_pair(*made);
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
  auto pair = view_->shared_pair();
  using Made = std::shared_ptr<const Grid>;
  bench_.jobs().start<Made>(
      tr("Slice of %1").arg(pair->name), "slice", this,
      [pair, slice](const Progress& progress) -> Result<Made> {
        constexpr int most = TensorView::kMostCells;
        TRY(Grid grid, make_grid(*pair, slice, most, most, progress));
        return std::make_shared<const Grid>(std::move(grid));
      },
      [this, slice, pair](Result<Made> grid) {
        if (view_->shared_pair() != pair) return;
        if (grid) return view_->set_grid(slice, *grid);
        bench_.report(grid.error());
      });
}

}  // namespace partita::views
