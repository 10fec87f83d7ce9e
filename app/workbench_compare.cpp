// Workbench: two backends held against each other, the values behind a row, and comparisons of the past.
#include <chrono>

#include "app/workbench.h"
#include "core/compare/per_node.h"
#include "core/store/code_store.h"
#include "core/store/store.h"
#include "views/look/format.h"

namespace partita {

using views::text;

namespace {

Runner runner_of(const WorkbenchTools::Backend& backend, const Progress& progress) {
  return
      [compile = backend.make(progress)](const Graph& graph, std::vector<Value> inputs) -> Result<std::vector<Value>> {
        TRY(Executable run, compile(graph));
        return run(std::move(inputs));
      };
}

struct Comparison {
  Report report;
  double seconds = 0;
  QString not_kept;  ///< why the store does not have it; empty: it does, or there is no store
};

// The graph's own outputs, without a look inside.
Result<Report> compare_outputs(const Graph& graph, const std::vector<Value>& inputs, const Runner& expected,
                               const Runner& found, const Tolerance& tolerance) {
  TRY(std::vector<Value> for_expected, copy_values(inputs));
  TRY(std::vector<Value> for_found, copy_values(inputs));
  TRY(std::vector<Value> a, expected(graph, std::move(for_expected)));
  TRY(std::vector<Value> b, found(graph, std::move(for_found)));
  Report report;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    report.rows.push_back(compare_values("output." + std::to_string(i), a[i], b[i], tolerance));
  return report;
}

const WorkbenchTools::Backend* find_backend(const WorkbenchTools& tools, const QString& name) {
  auto found = std::ranges::find(tools.backends, name, &WorkbenchTools::Backend::name);
  return found == tools.backends.end() ? nullptr : &*found;
}

constexpr std::int64_t kMostPast = 2000;

}  // namespace

void Workbench::wire_comparison() {
  compare_ = new views::CompareView;
  tensor_ = new views::TensorView;
  history_ = new views::HistoryView(&window_);
  history_->hide();  // unless it becomes a tab
  window_.add_bottom(compare_, tr("Compare"));
  window_.add_page(tensor_, tr("values"));
  auto themed = [this](const views::Theme& theme) {
    compare_->set_theme(theme);
    tensor_->set_theme(theme);
    history_->set_theme(theme);
  };
  connect(&window_, &views::MainWindow::theme_changed, this, themed);
  themed(window_.theme());
  QStringList names;
  for (const auto& backend : tools_.backends) names << backend.name;
  compare_->set_backends(names, tools_.doubted);
  connect(compare_, &views::CompareView::run_asked, this, &Workbench::compare);
  connect(compare_, &views::CompareView::values_asked, this, &Workbench::look_at);
  connect(compare_, &views::CompareView::node_chosen, this, [this](const QString& row) {
    selection_.select_node(row);
    if (window_.page() == tensor_) look_at(row);
  });
  connect(tensor_, &views::TensorView::slice_asked, this, &Workbench::ask_slice);
  connect(history_, &views::HistoryView::refresh_asked, this, &Workbench::read_history);
  connect(history_, &views::HistoryView::reports_asked, this, &Workbench::ask_reports);
  connect(history_, &views::HistoryView::node_chosen, this,
          [this](const QString& node) { selection_.select_node(node); });
  window_.add_command("Graph", tr("Run and compare"), QKeySequence("Ctrl+R"), [this] { compare(compare_->request()); });
  window_.add_command("Graph", tr("Look at the values"), QKeySequence("Ctrl+E"), [this] { show_view("values"); });
  if (!tools_.store_file.empty())
    window_.add_command("Graph", tr("Checks and runs of the past"), QKeySequence("Ctrl+H"),
                        [this] { show_view("history"); });
}

void Workbench::compare(const views::CompareRequest& request) {
  if (!current_ || !current_->graph) return;
  window_.show_bottom(tr("Compare"));
  const auto *expected = find_backend(tools_, request.expected), *found = find_backend(tools_, request.found);
  if (!expected || !found) return;
  const auto* wide = find_backend(tools_, tools_.baseline);
  compare_->clear(tr("comparing…"));
  QString key = current_->key;
  auto graph = current_->graph;
  auto artefact = current_->artefact;
  CheckRow row{current_->path.toStdString(), current_->id.toStdString(), "compare", true, {}};
  jobs_.start<Comparison>(
      tr("Compare %1 with %2").arg(request.expected, request.found), "compare:" + key, this,
      [=, inputs_of = tools_.inputs, store = tools_.store_file](const Progress& progress) -> Result<Comparison> {
        auto start = std::chrono::steady_clock::now();
        progress.at(-1, "inputs");
        auto copy = graph->clone();
        TRY(std::vector<Value> inputs, inputs_of(*copy, artefact, request.inputs));
        PerNodeOptions options;
        options.tolerance = request.tolerance;
        options.progress = &progress;
        if (wide) options.baseline = runner_of(*wide, progress);
        Runner first = runner_of(*expected, progress), second = runner_of(*found, progress);
        progress.at(-1, "running");
        Comparison done;
        if (request.per_node) {
          TRY(done.report, compare_nodes(*copy, inputs, first, second, options));
        } else {
          TRY(done.report, compare_outputs(*copy, inputs, first, second, request.tolerance));
        }
        done.report.expected_name = request.expected.toStdString();
        done.report.found_name = request.found.toStdString();
        done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        CheckRow kept = row;
        kept.ok = done.report.ok();
        kept.report = done.report.json();
        if (Status added = keep_in_store(store, kept); !added) done.not_kept = text(added.error().line());
        return done;
      },
      [this, key, request](Result<Comparison> done) {
        if (!done) {
          values_wanted_ = false;
          compare_->clear(text(done.error().line()));
          return report(done.error());
        }
        if (!done->not_kept.isEmpty()) window_.log(tr("Not kept for later: %1").arg(done->not_kept), true);
        show_report(key, request, done->report, done->seconds);
      });
}

void Workbench::show_report(const QString& key, const views::CompareRequest& request, const Report& report,
                            double seconds) {
  int bad = 0;
  double worst = 0;
  std::string where;
  auto document = documents_.find(key);
  for (const Difference& d : report.rows) {
    bad += !d.ok();
    if (d.max_abs > worst) worst = d.max_abs, where = d.name;
    if (document != documents_.end()) views::note_error(document->second->facts[d.name], d, request.tolerance);
  }
  QString summary = tr("%1 = %2: %3 compared, %4, worst %5%6 in %7")
                        .arg(request.expected, request.found)
                        .arg(report.rows.size())
                        .arg(bad == 0 ? tr("all agree") : tr("%1 differ").arg(bad), views::error_text(worst),
                             where.empty() ? QString() : " at " + text(where), views::seconds_text(seconds));
  const Difference* first = report.first_bad();
  compare_->set_report(report, request.tolerance, summary, first ? text(first->name) : QString());
  compared_ = request;
  compared_key_ = key;
  window_.set_status(summary, {});
  if (!current_ || current_->key != key) return;
  window_.graph()->set_facts(current_->facts);
  tell_overlays();
  if (std::exchange(values_wanted_, false) && compare_->table()->model()->rowCount() > 0)
    look_at(compare_->table()->model()->rows().front().node);
  measure(request.inputs);  // what the run was of is what its times are of
}

void Workbench::look_at(const QString& name) {
  if (!current_ || !current_->graph || name.isEmpty()) return;
  window_.show_page(tensor_);
  compare_->select(name);
  views::CompareRequest request = compared_ && compared_key_ == current_->key ? *compared_ : compare_->request();
  const auto *expected = find_backend(tools_, request.expected), *found = find_backend(tools_, request.found);
  if (!expected || !found) return;
  if (!tensor_->pair()) tensor_->set_note(tr("Computing %1…").arg(name));
  auto graph = current_->graph;
  auto artefact = current_->artefact;
  using Made = std::shared_ptr<const views::TensorPair>;
  jobs_.start<Made>(
      tr("Values of %1").arg(name), "values", this,
      [=, inputs_of = tools_.inputs](const Progress& progress) -> Result<Made> {
        progress.at(-1, "inputs");
        auto copy = graph->clone();
        TRY(std::vector<Value> inputs, inputs_of(*copy, artefact, request.inputs));
        std::string row = name.toStdString();
        progress.at(-1, "running " + request.expected.toStdString());
        TRY(const Value a, value_of(*copy, inputs, runner_of(*expected, progress), row));
        progress.at(-1, "running " + request.found.toStdString());
        TRY(const Value b, value_of(*copy, inputs, runner_of(*found, progress), row));
        TRY(views::TensorPair pair, views::make_tensor_pair(name, a, b, request.tolerance, progress));
        pair.expected_name = request.expected;
        pair.found_name = request.found;
        return std::make_shared<const views::TensorPair>(std::move(pair));
      },
      [this](Result<Made> made) {
        if (!made) return tensor_->set_note(text(made.error().line()));
        tensor_->set_pair(*made);
      });
}

void Workbench::ask_slice(const views::Slice& slice) {
  auto pair = tensor_->shared_pair();
  using Made = std::shared_ptr<const views::Grid>;
  jobs_.start<Made>(
      tr("Slice of %1").arg(pair->name), "slice", this,
      [pair, slice](const Progress& progress) -> Result<Made> {
        constexpr int most = views::TensorView::kMostCells;
        TRY(views::Grid grid, views::make_grid(*pair, slice, most, most, progress));
        return std::make_shared<const views::Grid>(std::move(grid));
      },
      [this, slice](Result<Made> grid) {
        if (grid) return tensor_->set_grid(slice, *grid);
        report(grid.error());
      });
}

void Workbench::read_history() {
  if (tools_.store_file.empty()) return;
  using Past = std::vector<views::PastWork>;
  jobs_.start<Past>(
      tr("Read the store"), "history", this,
      [file = tools_.store_file](const Progress&) -> Result<Past> {
        TRY(Store store, Store::open(file));
        TRY(const auto checks, store.checks(kMostPast));
        TRY(const auto runs, store.runs(kMostPast));
        return views::past_work(checks, runs);
      },
      [this](Result<Past> past) {
        if (!past) return history_->set_note(text(past.error().line()));
        history_->set_past(*std::move(past));
      });
}

void Workbench::ask_reports(const std::vector<std::int64_t>& checks) {
  using Reports = std::vector<Report>;
  jobs_.start<Reports>(
      tr("Read %1").arg(views::count_text(static_cast<std::int64_t>(checks.size()), "report")), "reports", this,
      [checks, file = tools_.store_file](const Progress&) -> Result<Reports> {
        TRY(Store store, Store::open(file));
        Reports reports;
        for (std::int64_t id : checks) {
          TRY(const std::string json, store.check_report(id));
          TRY(Report report, Report::from_json(json));
          reports.push_back(std::move(report));
        }
        return reports;
      },
      [this](Result<Reports> reports) {
        if (!reports) return history_->set_note(text(reports.error().line()));
        history_->set_reports(*reports);
      });
}

}  // namespace partita
