#include "views/compare/compare_controller.h"

#include <algorithm>
#include <chrono>

#include "core/compare/per_node.h"
#include "core/store/store.h"
#include "views/graph/graph_controller.h"
#include "views/look/format.h"
#include "views/window/workbench.h"

namespace partita::views {
namespace {

struct Comparison {
  Report report;
  double seconds = 0;
  QString not_kept;  ///< why the store does not have it; empty: it does, or there is no store
};

}  // namespace

std::unique_ptr<Controller> make_compare_view(Workbench& bench) {
  return std::make_unique<CompareController>(bench);
}

CompareController::CompareController(Workbench& bench) : WidgetController(bench) {
  view_->set_backends(bench.tools().backend_names(), bench.tools().doubted);
  connect(view_, &CompareView::run_asked, this, &CompareController::compare);
  connect(view_, &CompareView::node_chosen, &bench, &Workbench::select_node);
  // A comparison that was cancelled leaves what was there before.
  connect(&bench.jobs(), &JobTracker::finished, this, [this](int id) {
    if (id != job_) return;
    job_ = 0;
    const Document* document = bench_.current();
    if (!document) return;
    show_report_of(document->key);
    if (!compared_.contains(document->key)) view_->set_note(tr("cancelled"));
    bench_.window().set_status(tr("Comparison cancelled"), {});
  });
  bench.offer(bench.window().add_command("Graph", tr("Run and compare"), QKeySequence("Ctrl+R"), [this] { show(); }),
              tr("Compare"), [](const Document& document) { return document.graph != nullptr; });
}

std::vector<Controller::OverlaySource> CompareController::overlays() {
  return {{OverlayKind::Error, [this] { show(); }, tr("Not compared yet: Graph > Run and compare (Ctrl+R)")}};
}

QStringList CompareController::command() const {
  if (!on_screen() || !bench_.current() || !compared_.contains(bench_.current()->key)) return {};
  const CompareRequest request = view_->request();
  QStringList words{"compare", "--backends", shell_word(request.expected + "," + request.found)};
  if (request.inputs.isEmpty())
    words << "--random-weights" << "0";
  else
    words << "--inputs" << shell_word(request.inputs);
  if (request.per_node) words << "--per-node";
  return words;
}

CompareRequest CompareController::request_of(const Document& document) const {
  const auto found = compared_.find(document.key);
  return found == compared_.end() ? view_->request() : found->second.request;
}

void CompareController::compare(const CompareRequest& request) {
  const Document* document = bench_.current_graph();
  if (!document) return;
  raise();
  const WorkbenchTools& tools = bench_.tools();
  const auto *expected = tools.find_backend(request.expected), *found = tools.find_backend(request.found);
  if (!expected || !found) return;
  const auto* wide = tools.find_backend(tools.baseline);
  view_->set_note(tr("comparing…"));
  QString key = document->key;
  CheckRow row{document->path.toStdString(), document->id.toStdString(), "compare", true, {}};
  job_ = bench_.jobs().start<Comparison>(
      tr("Compare %1 with %2").arg(request.expected, request.found), "compare:" + key, this,
      [=, graph = document->graph, artefact = document->artefact, inputs_of = tools.inputs,
       store = tools.store_file](const Progress& progress) -> Result<Comparison> {
        auto start = std::chrono::steady_clock::now();
        progress.at(-1, "inputs");
        auto copy = graph->clone();
        TRY(std::vector<Value> inputs, inputs_of(*copy, artefact, request.inputs));
        PerNodeOptions options;
        options.tolerance = request.tolerance;
        options.progress = &progress;
        if (wide) options.baseline = wide->runner(progress);
        Runner first = expected->runner(progress), second = found->runner(progress);
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
        job_ = 0;
        if (!done) {
          view_->set_note(text(done.error().line()));
          bench_.report(done.error());
          Q_EMIT ended(false);
          return;
        }
        if (!done->not_kept.isEmpty()) bench_.window().log(tr("Not kept for later: %1").arg(done->not_kept), true);
        show_report(key, request, done->report, done->seconds);
      });
}

void CompareController::show_report(const QString& key, const CompareRequest& request, const Report& report,
                                    double seconds) {
  const std::size_t bad = report.bad(), inherited = report.inherited();
  double worst = 0;
  std::string where;
  Document* document = bench_.document(key);
  for (const Difference& d : report.rows) {
    if (d.max_abs > worst) worst = d.max_abs, where = d.name;
    if (document) note_error(document->facts[d.name], d, request.tolerance);
  }
  QString summary =
      tr("%1 = %2: %3 compared, %4, worst %5%6 in %7")
          .arg(request.expected, request.found)
          .arg(report.rows.size())
          .arg(bad == 0         ? tr("all agree")
               : inherited == 0 ? tr("%1 differ").arg(bad)
                                : tr("%1 differ, %2 after them").arg(bad - inherited).arg(inherited),
               error_text(worst), where.empty() ? QString() : " at " + text(where), seconds_text(seconds));
  if (const auto died = std::ranges::find_if(report.rows, [](const Difference& d) { return !d.died.empty(); });
      died != report.rows.end())
    summary = tr("%1 = %2: ended at %3, %4 compared before it")
                  .arg(request.expected, request.found, text(died->name))
                  .arg(report.rows.size() - 1);
  if (document) compared_[key] = {request, report, summary};
  if (!document || document != bench_.current()) return;
  show_report_of(key);
  bench_.window().set_status(summary, {});
  bench_.facts_changed(*document);
  Q_EMIT ended(true);
  bench_.get<GraphController>().measure(request.inputs);  // times of the same run
}

void CompareController::set_document(const Document& document) {
  show_report_of(document.key);
}

void CompareController::show_report_of(const QString& key) {
  const auto found = compared_.find(key);
  if (found == compared_.end()) return view_->clear();
  const Compared& done = found->second;
  const Difference* first = done.report.first_bad();
  view_->set_report(done.report, done.request.tolerance, done.summary, first ? text(first->name) : QString());
}

}  // namespace partita::views
