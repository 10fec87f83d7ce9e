#include "views/history/history_controller.h"

#include "views/frame/workbench.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

constexpr std::int64_t kMostPast = 2000;

}  // namespace

extern const MakeView make_history_view = [](Workbench& bench) -> std::unique_ptr<Controller> {
  return bench.tools().store_file.empty() ? nullptr : std::make_unique<HistoryController>(bench);
};

HistoryController::HistoryController(Workbench& bench) : WidgetController(bench) {
  connect(view_, &HistoryView::refresh_asked, this, &HistoryController::read_past);
  connect(view_, &HistoryView::reports_asked, this, &HistoryController::read_reports);
  connect(view_, &HistoryView::explanation_asked, this, &HistoryController::explain);
  connect(view_, &HistoryView::node_chosen, &bench.selection(), &Selection::select_node);
  bench.window().add_command("Graph", tr("Checks, runs and cache entries of the past"), QKeySequence("Ctrl+H"),
                             [this] { go(); });
}

void HistoryController::show() {
  raise();
  read_past();
}

void HistoryController::read_past() {
  using Past = std::vector<PastWork>;
  bench_.jobs().start<Past>(
      tr("Read the store"), "history", this,
      [file = bench_.tools().store_file](const Progress&) -> Result<Past> {
        TRY(StoreFile store, StoreFile::open(file));
        TRY(const auto checks, store.checks(kMostPast));
        TRY(const auto runs, store.runs(kMostPast));
        TRY(const auto entries, store.entries(kMostPast));
        return past_work(checks, runs, entries);
      },
      [this](Result<Past> past) {
        if (!past) return view_->set_note(text(past.error().line()));
        view_->set_past(*std::move(past));
      });
}

void HistoryController::read_reports(const std::vector<std::int64_t>& checks) {
  using Reports = std::vector<Report>;
  bench_.jobs().start<Reports>(
      tr("Read %1").arg(count_text(static_cast<std::int64_t>(checks.size()), "report")), "reports", this,
      [checks, file = bench_.tools().store_file](const Progress&) -> Result<Reports> {
        TRY(StoreFile store, StoreFile::open(file));
        Reports reports;
        for (std::int64_t id : checks) {
          TRY(const std::string json, store.check_report(id));
          TRY(Report report, Report::from_json(json));
          reports.push_back(std::move(report));
        }
        return reports;
      },
      [this](Result<Reports> reports) {
        if (!reports) return view_->set_note(text(reports.error().line()));
        view_->set_reports(*reports);
      });
}

void HistoryController::explain(const std::string& a, const std::string& b) {
  bench_.jobs().start<EntryDifference>(
      tr("Compare the keys of entries"), "reports", this,
      [a, b, file = bench_.tools().store_file](const Progress&) -> Result<EntryDifference> {
        TRY(StoreFile store, StoreFile::open(file));
        return a.empty() ? explain_entries(store, b) : explain_entries(store, a, b);
      },
      [this](Result<EntryDifference> found) {
        if (!found) return view_->set_note(text(found.error().line()));
        view_->set_explanation(*found);
      });
}

}  // namespace partita::views
