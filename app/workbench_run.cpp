// Workbench: a whole program run with a compiler by name.
#include "app/workbench.h"
#include "core/store/code_store.h"
#include "views/look/format.h"

namespace partita {

using views::text;

namespace {

struct Done {
  std::vector<views::Row> rows;
  std::shared_ptr<const views::CodeDocument> printed;
  QString summary;
  QString not_kept;  ///< why the store does not have it; empty: it does, or there is no store
};

QString summary_of(const views::ProgramResult& result) {
  QString line = QString("%1 in %2")
                     .arg(views::count_text(static_cast<std::int64_t>(result.results.tensors.size()), "result"),
                          views::seconds_text(result.seconds));
  const Report& report = result.against_file;
  if (report.rows.empty()) return line;
  const auto wrong = std::ranges::count_if(report.rows, [](const Difference& d) { return !d.ok(); });
  return line + (wrong == 0 ? QString(", all as in the file")
                            : QString(", %1 of %2 not as in the file").arg(wrong).arg(report.rows.size()));
}

}  // namespace

void Workbench::wire_run() {
  run_ = new views::RunView(&window_);
  run_->hide();  // unless it becomes a tab
  if (!tools_.run) return;
  window_.add_bottom(run_, tr("Run"));
  run_->set_compilers(tools_.compilers);
  auto themed = [this](const views::Theme& theme) { run_->set_theme(theme); };
  connect(&window_, &views::MainWindow::theme_changed, this, themed);
  themed(window_.theme());
  connect(run_, &views::RunView::run_asked, this, &Workbench::run_program);
  window_.add_command("Graph", tr("Run with a compiler"), QKeySequence("Ctrl+Shift+R"), [this] { show_view("run"); });
}

void Workbench::run_program(const views::ProgramRequest& request) {
  if (!current_ || !current_->graph || !tools_.run) return;
  window_.show_bottom(tr("Run"));
  run_->clear(tr("running…"));
  RunRow row{current_->path.toStdString(),
             current_->id.toStdString(),
             request.compiler.toStdString(),
             request.train ? "train" : "",
             0,
             "ok"};
  jobs_.start<Done>(
      tr("Run %1 with %2").arg(current_->title, request.compiler), "run", this,
      [=, artefact = current_->artefact, run = tools_.run,
       file = tools_.store_file](const Progress& progress) -> Result<Done> {
        auto result = run(artefact, request, progress);
        RunRow kept = row;
        kept.milliseconds = result ? result->seconds * 1000 : 0;
        if (!result) kept.outcome = result.error().code;
        Status added = keep_in_store(file, kept);
        if (result && added && !result->against_file.rows.empty())
          added = keep_in_store(
              file, CheckRow{kept.path, kept.graph, "compare", result->against_file.ok(), result->against_file.json()});
        if (!result) return std::move(result).error();
        return Done{views::result_rows(*result),
                    std::make_shared<const views::CodeDocument>(text(result->printed), nullptr), summary_of(*result),
                    added ? QString() : text(added.error().line())};
      },
      [this](Result<Done> done) {
        if (!done) {
          run_->clear({});
          return report(done.error());
        }
        if (!done->not_kept.isEmpty()) window_.log(tr("Not kept for later: %1").arg(done->not_kept), true);
        run_->set_result(std::move(done->rows), done->printed, done->summary);
      });
}

}  // namespace partita
