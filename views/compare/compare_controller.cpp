// Runs comparisons as jobs: of the graph's own nodes if it is functional and the sides are plain backends, else of the
// whole flow. Keeps reports by document and in the store, and notes errors at nodes.
#include "views/compare/compare_controller.h"

#include <QDateTime>
#include <algorithm>
#include <chrono>

#include "core/base/mapped.h"
#include "core/compare/per_node.h"
#include "core/compare/rounding.h"
#include "core/fake/propagate.h"
#include "core/functionalize/stage_rules.h"
#include "core/store/store.h"
#include "views/frame/workbench.h"
#include "views/graph/graph_controller.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

struct Comparison {
  std::vector<Report> reports;
  std::unordered_map<std::string, std::string> shown;  ///< see shown_nodes()
  double seconds = 0;
  QString not_kept;  ///< why the store does not have it; empty: it does, or there is no store
};

/// Do its nodes have values of their own, which nothing writes to?
bool is_functional(const Graph& graph) {
  if (verify(graph, Stage::Functional).empty()) return true;
  const auto known = graph.clone();  // text lacks the metas of tuples
  return propagate(*known) && verify(*known, Stage::Functional).empty();
}

/// "3 differ, 2 after them", or that all agree.
QString outcome(const Report& report) {
  const std::size_t bad = report.bad(), inherited = report.inherited();
  if (const auto died = std::ranges::find_if(report.rows, [](const Difference& d) { return !d.died.empty(); });
      died != report.rows.end())
    return QObject::tr("ended at %1, %2 compared before it").arg(text(died->name)).arg(report.rows.size() - 1);
  return bad == 0         ? QObject::tr("all agree")
         : inherited == 0 ? QObject::tr("%1 differ").arg(bad)
                          : QObject::tr("%1 differ, %2 after them").arg(bad - inherited).arg(inherited);
}

/// What is said of the reports in one line: the verdict first.
QString summary_of(const CompareRequest& request, const std::vector<Report>& reports, double seconds) {
  QStringList parts;
  for (const Report& report : reports) {
    const auto worst = std::ranges::max_element(report.rows, {}, &Difference::max_abs);
    QString part = QObject::tr("%1 = %2: %3 compared, %4")
                       .arg(text(request.expected), text(report.found_name))
                       .arg(report.rows.size())
                       .arg(outcome(report));
    if (worst != report.rows.end() && worst->died.empty())
      part += QObject::tr(", worst %1%2")
                  .arg(error_text(worst->max_abs), worst->max_abs > 0 ? " at " + text(worst->name) : QString());
    if (report.seconds > 0 && reports.size() > 1) part += QObject::tr(", run in %1").arg(seconds_text(report.seconds));
    parts << part;
  }
  parts << texts(not_compared(reports));
  return parts.join("; ") + QObject::tr(" in %1").arg(seconds_text(seconds));
}

constexpr std::int64_t kMostChecks = 500;
constexpr std::size_t kMostColumns = 12;

}  // namespace

extern const MakeView make_compare_view = make_view<CompareController>;

CompareController::CompareController(Workbench& bench) : WidgetController(bench) {
  view_->set_backends(bench.tools().backend_names(), bench.tools().suspect);
  connect(view_, &CompareView::run_asked, this, &CompareController::compare);
  connect(view_, &CompareView::node_chosen, &bench.selection(), &Selection::select_node);
  // A comparison that was cancelled leaves what was there before.
  connect(&bench.jobs(), &JobTracker::finished, this, [this](int id) {
    if (id != job_) return;
    job_ = 0;
    const Document* document = bench_.documents().current();
    if (!document) return;
    show_report_of(document->key);
    if (!compared_.contains(document->key)) view_->set_note(tr("cancelled"));
    bench_.window().set_status(tr("Comparison cancelled"), {});
    Q_EMIT ended(false);
  });
  // Opened again, the file may hold another graph.
  connect(&bench.documents(), &Documents::closed, this, [this](const QString& path) {
    std::erase_if(compared_, [&](const auto& compared) { return compared.first.startsWith(path + "#"); });
  });
  bench.offer(bench.window().add_command("Graph", tr("Run and compare"), QKeySequence("Ctrl+R"), [this] { show(); }),
              tr("Compare"), [](const Document& document) { return document.graph != nullptr; });
}

std::vector<Controller::OverlaySource> CompareController::overlays() {
  return {{OverlayKind::Error, [this] { show(); }, tr("Not compared yet: Graph > Run and compare (Ctrl+R)")}};
}

QStringList CompareController::command() const {
  if (!on_screen() || !bench_.documents().current() || !compared_.contains(bench_.documents().current()->key))
    return {};
  const CompareRequest request = request_of(*bench_.documents().current());
  QStringList words{"compare"};
  const auto side = [this](const QString& name) {
    const auto* backend = bench_.tools().find_backend(name);
    return backend && !backend->side.isEmpty() ? backend->side : name;
  };
  const QString expected = side(text(request.expected));
  const QStringList columns = texts(request.found);
  if (columns.size() == 1 && bench_.tools().find_backend(columns[0]) && side(columns[0]) == columns[0]) {
    words << "--backends" << shell_word(expected + "," + columns[0]);
  } else {
    words << "--reference" << shell_word(expected);
    for (const QString& column : columns) words << "--against" << shell_word(side(column));
  }
  words << inputs_words(text(request.inputs));
  if (request.per_node) words << "--per-node";
  if (request.train) words << "--train";
  const Tolerance usual;
  if (request.tolerance.absolute != usual.absolute) words << "--atol" << QString::number(request.tolerance.absolute);
  if (request.tolerance.relative != usual.relative) words << "--rtol" << QString::number(request.tolerance.relative);
  return words;
}

CompareRequest CompareController::request_of(const Document& document) const {
  const auto found = compared_.find(document.key);
  return found == compared_.end() ? view_->request() : found->second.request;
}

void CompareController::compare(const CompareRequest& request) {
  const Document* document = bench_.documents().current_graph();
  const QStringList names = texts(request.found);
  const QString reference = text(request.expected);
  if (!document || names.isEmpty()) return;
  raise();
  const WorkbenchTools& tools = bench_.tools();
  const auto* expected = tools.find_backend(reference);
  const auto found = mapped(names, [&](const QString& name) { return tools.find_backend(name); });
  // A run in double is compared in the dtypes of the graph, which the flow sees to.
  const bool plain = expected && std::ranges::find(found, nullptr) == found.end() &&
                     !(tools.compare && (names.contains(tools.baseline) || reference == tools.baseline));
  if (!plain && !tools.compare) return view_->set_note(tr("There is no backend %1").arg(names.join(", ")));
  const auto* wide = tools.find_backend(tools.baseline);
  view_->set_note(tr("comparing…"));
  QString key = document->key;
  CheckRow row{document->path.toStdString(), document->id.toStdString(), "compare", true, {}};
  job_ = bench_.jobs().start<Comparison>(
      tr("Compare %1 with %2").arg(reference, names.join(", ")), "compare:" + key, this,
      [=, graph = document->graph, artefact = document->artefact, inputs_of = tools.inputs,
       compare_flow = tools.compare, store = tools.store_file](const Progress& progress) -> Result<Comparison> {
        auto start = std::chrono::steady_clock::now();
        Comparison done;
        // The nodes of the graph itself where they can be told apart, else of those that the flow makes of it.
        if (plain && !request.train && (!compare_flow || is_functional(*graph))) {
          progress.at(-1, "inputs");
          auto copy = graph->clone();
          TRY(std::vector<Value> inputs, inputs_of(*copy, artefact, text(request.inputs)));
          PerNodeOptions options;
          options.tolerance = request.tolerance;
          options.progress = &progress;
          options.nodes = request.per_node;
          options.own = options.statistics = true;
          if (wide && request.per_node) {
            options.baseline = wide->runner(progress);
            options.shifted = [&progress](unsigned seed) -> Runner {
              return [&progress, seed](const Graph& seen, const std::vector<Value>& values) {
                return interpret_shifted(seen, values, seed, true, {.progress = &progress});
              };
            };
          }
          std::vector<Column> columns;
          for (std::size_t i = 0; i < found.size(); ++i)
            columns.push_back({request.found[i], found[i]->runner(progress)});
          progress.at(-1, "running");
          TRY(done.reports,
              compare_columns(*copy, inputs, {request.expected, expected->runner(progress)}, columns, options));
        } else {
          TRY(done.reports, compare_flow(artefact, request, progress));
        }
        done.shown = shown_nodes(*graph, done.reports);
        done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        for (const Report& report : done.reports) {
          CheckRow kept = row;
          kept.ok = report.ok();
          kept.report = report.json();
          if (Status added = keep_in_store(store, kept); !added) done.not_kept = text(added.error().line());
        }
        return done;
      },
      [this, key, request](Result<Comparison> done) {
        job_ = 0;
        if (!done) {
          view_->set_note(text(done.error().line()));
          bench_.window().report(done.error());
          Q_EMIT ended(false);
          return;
        }
        if (!done->not_kept.isEmpty()) bench_.window().log(tr("Not kept for later: %1").arg(done->not_kept), true);
        Compared compared{request, std::move(done->reports), std::move(done->shown), {}, {}};
        compared.summary = summary_of(request, compared.reports, done->seconds);
        show_reports(key, std::move(compared));
      });
}

void CompareController::show_reports(const QString& key, Compared done) {
  Document* document = bench_.documents().find(key);
  if (!document) return;
  const CompareRequest request = done.request;
  const auto node_of = [&done](const Difference& d) {
    const auto node = done.shown.find(d.name);
    return node == done.shown.end() ? d.name : node->second;
  };
  // A node shows the worst of the rows that it stands for.
  std::unordered_map<std::string, const Difference*> worst;
  for (const Report& report : done.reports) {
    for (const Difference& d : report.rows) {
      const Difference*& known = worst[node_of(d)];
      if (!known || badness(d) > badness(*known)) known = &d;
    }
    if (const Difference* first = report.first_bad(); first && done.first_wrong.isEmpty())
      done.first_wrong = text(node_of(*first));
  }
  for (const auto& [node, difference] : worst) note_error(document->facts[node], *difference, request.tolerance);
  const QString summary = done.summary;
  compared_[key] = std::move(done);
  read_past(*document);
  if (document != bench_.documents().current()) return;
  show_report_of(key);
  bench_.window().set_status(summary, {});
  bench_.screen().facts_changed(*document);
  Q_EMIT ended(true);
  bench_.views().get<GraphController>().measure(text(request.inputs));  // times of the same run
}

void CompareController::wait_for(const Document&) {
  shown_.clear();
  view_->clear();
}

// A large report takes a while to show, and a new cut does not change it.
void CompareController::set_document(const Document& document) {
  if (shown_.isEmpty() || shown_ != document.key) show_report_of(document.key);
  read_past(document);
}

/// Offers what the store has of this graph as columns.
void CompareController::read_past(const Document& document) {
  if (bench_.tools().store_file.empty() || !bench_.tools().compare || !document.graph) return;
  using Past = std::vector<PastColumn>;
  bench_.jobs().start<Past>(
      tr("Read the store"), "columns", this,
      [file = bench_.tools().store_file, path = document.path.toStdString(),
       id = document.id.toStdString()](const Progress&) -> Result<Past> {
        TRY(StoreFile store, StoreFile::open(file));
        TRY(const auto checks, store.checks(kMostChecks));
        Past past;
        for (const StoredCheck& check : checks) {
          if (check.row.kind != "compare" || check.row.graph != id || stored_path(check.row.path) != stored_path(path))
            continue;
          past.push_back(
              {QString("past:%1").arg(check.id), QDateTime::fromSecsSinceEpoch(check.at).toString("yyyy-MM-dd hh:mm") +
                                                     (check.row.ok ? tr(", all agreed") : tr(", differed"))});
          if (past.size() == kMostColumns) break;
        }
        return past;
      },
      [this](Result<Past> past) {
        if (past) return view_->set_past(*std::move(past));
        bench_.window().log(text(past.error().line()), true);
      });
}

void CompareController::show_report_of(const QString& key) {
  const auto found = compared_.find(key);
  shown_ = found == compared_.end() ? QString() : key;
  if (shown_.isEmpty()) return view_->clear();
  const Compared& done = found->second;
  view_->set_report(done.reports, done.request.tolerance, done.summary, done.first_wrong, done.shown);
}

}  // namespace partita::views
