#include "views/run/run_controller.h"

#include <algorithm>

#include "core/base/whereabouts.h"
#include "core/store/store.h"
#include "views/frame/workbench.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

struct Done {
  std::vector<Row> rows;
  std::shared_ptr<const CodeDocument> printed;
  QString summary;
  QString details;
  QString not_kept;  ///< why the store does not have it; empty: it does, or there is no store
};

/// The verdict first, because little of the line may fit.
QString summary_of(const CompilerRun& run) {
  QString line = count_text(static_cast<std::int64_t>(run.results.tensors.size()), "result");
  const Report& report = run.against_file;
  const auto wrong = std::ranges::count_if(report.rows, [](const Difference& d) { return !d.ok(); });
  if (wrong > 0)
    line = QString("%1 of %2 not as in the file").arg(wrong).arg(count_text(std::ssize(report.rows), "result"));
  else if (!report.rows.empty())
    line += " as in the file";
  line += "; " + seconds_text(run.seconds);
  double compiled = 0;
  for (const auto& [stage, milliseconds] : run.stages) compiled += milliseconds;
  return compiled > 0 ? line + QString(", %1 of it compiling").arg(seconds_text(compiled / 1000)) : line;
}

QString details_of(const CompilerRun& run) {
  QStringList lines;
  for (const auto& [stage, milliseconds] : run.stages)
    lines << QString("%1: %2").arg(text(stage), seconds_text(milliseconds / 1000));
  return lines.join('\n');
}

/// Stands where the results would: the node that compiled code died at, and how.
Row row_of(const Diagnostic& death) {
  return {text(death.where.node), {Cell(text(death.where.node)), Cell(), Cell(text(death.message), Tone::Bad)}};
}

std::shared_ptr<const CodeDocument> nothing_printed() {
  return std::make_shared<const CodeDocument>(QString(), nullptr);
}

}  // namespace

extern const MakeView make_run_view = make_view<RunController, &WorkbenchTools::run>;

RunController::RunController(Workbench& bench) : WidgetController(bench) {
  view_->set_compilers(bench.tools().compilers);
  connect(view_, &RunView::run_asked, this, &RunController::run);
  connect(&bench.jobs(), &JobTracker::finished, this, [this](int id) {
    // One that was cancelled leaves what was there before.
    if (id == job_) view_->say(said_.isEmpty() ? tr("cancelled") : said_);
  });
  bench.window().add_command("Graph", tr("Run with a compiler"), QKeySequence("Ctrl+Shift+R"), [this] { go(); });
}

void RunController::show() {
  raise();
  if (!view_->wants_folder()) run(view_->request());
}

QStringList RunController::command() const {
  if (!on_screen()) return {};
  const CompilerRequest request = view_->request();
  QStringList words{"run", "--compiler", shell_word(text(request.compiler))};
  words << inputs_words(text(request.inputs));
  if (request.train) words << "--train";
  if (!bench_.tools().plant.isEmpty()) words << "--plant" << shell_word(bench_.tools().plant);
  if (!request.folder.empty()) words << "--compiler-folder" << shell_word(text(request.folder));
  return words;
}

void RunController::set_document(const Document& document) {
  if (std::exchange(ran_, document.key) == document.key) return;
  show_nothing();
  job_ = 0;
}

void RunController::show_nothing() {
  view_->clear();
  said_.clear();
}

void RunController::run(const CompilerRequest& request) {
  const Document* document = bench_.documents().current_graph();
  if (!document) return;
  raise();
  view_->say(tr("running…"));
  RunRow row{document->path.toStdString(),
             document->id.toStdString(),
             request.compiler,
             request.train ? "train" : "",
             0,
             "ok"};
  ran_ = document->key;
  job_ = bench_.jobs().start<Done>(
      tr("Run %1 with %2").arg(document->title, text(request.compiler)), "run", this,
      [=, artefact = document->artefact, run = bench_.tools().run,
       file = bench_.tools().store_file](const Progress& progress) -> Result<Done> {
        auto result = run(artefact, request, progress);
        RunRow kept = row;
        kept.milliseconds = result ? result->seconds * 1000 : 0;
        if (!result) kept.outcome = result.error().code;
        Status added = keep_in_store(file, kept);
        if (result && added && !result->against_file.rows.empty())
          added = keep_in_store(
              file, CheckRow{kept.path, kept.graph, "compare", result->against_file.ok(), result->against_file.json()});
        if (!result) return std::move(result).error();
        const std::size_t begin = std::min(result->printed.find_first_not_of('\n'), result->printed.size());
        return Done{result_rows(*result),
                    std::make_shared<const CodeDocument>(text(result->printed.substr(begin)), nullptr),
                    summary_of(*result), details_of(*result), added ? QString() : text(added.error().line())};
      },
      [this, key = document->key](Result<Done> done) {
        job_ = 0;
        if (!bench_.documents().current() || bench_.documents().current()->key != key) return;
        if (!done) {
          show_nothing();
          if (is_death(done.error()))
            view_->set_result({row_of(done.error())}, nothing_printed(), said_ = tr("ended early"));
          return bench_.window().report(done.error());
        }
        if (!done->not_kept.isEmpty()) bench_.window().log(tr("Not kept for later: %1").arg(done->not_kept), true);
        view_->set_result(std::move(done->rows), done->printed, said_ = done->summary, done->details);
      });
}

}  // namespace partita::views
