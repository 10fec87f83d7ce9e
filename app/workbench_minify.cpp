// Workbench: a minification as a job that is watched.
#include <QDesktopServices>
#include <QFileDialog>
#include <QFileInfo>
#include <QTreeView>
#include <QUrl>
#include <mutex>

#include "app/minify_question.h"
#include "app/run_artefact.h"
#include "app/workbench.h"
#include "core/ir/print.h"
#include "core/store/code_store.h"
#include "views/look/format.h"

namespace partita {

using views::text;

namespace {

views::MinifyStep step_of(const minify::Event& e) {
  views::MinifyStep step;
  step.strategy = text(e.strategy);
  step.tried = text(e.tried);
  step.fails = e.fails;
  step.remembered = e.remembered;
  step.tries = static_cast<std::int64_t>(e.tries);
  step.recalled = static_cast<std::int64_t>(e.recalled);
  step.calls = static_cast<std::int64_t>(e.calls);
  step.start_calls = static_cast<std::int64_t>(e.start_calls);
  step.seconds = e.seconds;
  step.tries_per_second = e.tries_per_second;
  step.graph = e.graph;
  return step;
}

views::MinifyOutcome outcome_of(const minify::Reduced& r, const minify::Culprit& culprit) {
  return {text(r.failure.text()),
          text(culprit.pass),
          text(culprit.kernel),
          static_cast<std::int64_t>(r.calls),
          static_cast<std::int64_t>(r.start_calls),
          static_cast<std::int64_t>(r.tries),
          r.seconds,
          r.graph,
          static_cast<std::int64_t>(r.recalled)};
}

struct Drawn {
  std::shared_ptr<const views::Scene> scene;
  std::shared_ptr<const views::CodeDocument> code;
};

}  // namespace

/// What the reducing thread and the window share, and what came out.
struct Workbench::Minification {
  minify::Steering steering;
  std::mutex mutex;
  std::vector<views::MinifyStep> steps;  ///< not shown yet; guarded by the mutex

  MinifyTool tool;
  QString parent;             ///< key of the document
  int job = 0, draw_job = 0;  ///< of the tracker
  std::shared_ptr<const Graph> smallest, drawn;
  std::shared_ptr<const minify::Reduced> reduced;  ///< null: not ended yet
  minify::Culprit culprit;
  QStringList notes;  ///< what could not be done, besides
};

void Workbench::wire_minifier() {
  minify_ = new views::MinifyView(&window_);
  minify_->hide();  // unless it becomes a page
  if (!tools_.minifier) return;
  window_.add_page(minify_, tr("minifier"));
  auto themed = [this](const views::Theme& theme) { minify_->set_theme(theme); };
  connect(&window_, &views::MainWindow::theme_changed, this, themed);
  themed(window_.theme());
  QStringList names;
  for (const auto& backend : tools_.backends) names << backend.name;
  minify_->set_choices({"accuracy", "crash"}, names, tools_.doubted);
  connect(minify_, &views::MinifyView::run_asked, this, &Workbench::minify);
  connect(minify_, &views::MinifyView::pause_asked, this, [this](bool pause) {
    if (minification_) minification_->steering.pause = pause;
  });
  connect(minify_, &views::MinifyView::accept_asked, this, [this] {
    if (minification_) minification_->steering.accept_now = true;
  });
  connect(minify_, &views::MinifyView::cancel_asked, this, [this] {
    if (minification_) jobs_.cancel(minification_->job);
  });
  connect(minify_, &views::MinifyView::save_asked, this, &Workbench::ask_repro_folder);
  connect(minify_, &views::MinifyView::open_asked, this, &Workbench::open_smallest);
  connect(minify_, &views::MinifyView::folder_asked, this,
          [](const QString& folder) { QDesktopServices::openUrl(QUrl::fromLocalFile(folder)); });
  // The tracker's own beat, ten times a second: a fast minification does not flood the event loop.
  connect(&jobs_, &views::JobTracker::changed, this, &Workbench::show_tries);
  window_.add_command("Graph", tr("Minify"), QKeySequence("Ctrl+M"), [this] { show_minifier(); });
}

void Workbench::show_minifier() {
  if (!minification_ && current_) minify_->set_graph(current_->scene, current_->code);
  window_.show_page(minify_);
  minify_->setFocus();
}

void Workbench::minify(const views::MinifyRequest& request) {
  if (!tools_.minifier || !current_ || !current_->graph) return;
  window_.show_page(minify_);
  if (minify_->running()) return;
  auto tool = tools_.minifier(request);
  if (!tool) return minify_->fail(text(tool.error().line()));
  auto shared = std::make_shared<Minification>();
  shared->tool = *tool;
  shared->parent = current_->key;
  using Ended = std::shared_ptr<const minify::Reduced>;
  CheckRow row{current_->path.toStdString(), current_->id.toStdString(), "minify", false, {}};
  shared->job = jobs_.start<Ended>(
      tr("Minify %1").arg(current_->title), "minify", this,
      [shared, tool = *std::move(tool), artefact = current_->artefact, io_path = request.inputs, row,
       store = tools_.store_file](const Progress& progress) -> Result<Ended> {
        progress.at(-1, "inputs");
        TensorFile io;
        if (!io_path.isEmpty()) {
          TRY(io, read_inputs(io_path.toStdString()));
        }
        TRY(minify::Start start, minify::make_start(artefact, io, 0, tool.functional));
        minify::ReduceOptions how;
        how.progress = &progress;
        how.steering = &shared->steering;
        if (tool.memory) how.memory = tool.memory(start);
        how.event = [shared](const minify::Event& e) {
          const std::lock_guard lock(shared->mutex);
          shared->steps.push_back(step_of(e));
        };
        TRY(minify::Reduced reduced, minify::reduce(start.graph, std::move(start.inputs), tool.oracle, how));
        if (tool.culprit) {
          progress.at(-1, "who is to blame");
          auto culprit = tool.culprit(reduced, progress);
          if (culprit)
            shared->culprit = *std::move(culprit);
          else
            shared->notes << text(culprit.error().line());
        }
        CheckRow kept = row;
        kept.report = minify_report(reduced, shared->culprit);
        if (Status added = keep_in_store(store, kept); !added)
          shared->notes << tr("Not kept for later: %1").arg(text(added.error().line()));
        return std::make_shared<const minify::Reduced>(std::move(reduced));
      },
      [this, shared](Result<Ended> ended) {
        take_tries();
        for (const QString& note : shared->notes) window_.log(note, true);
        if (!ended) return minify_->fail(text(ended.error().line()));
        shared->reduced = *ended;
        shared->smallest = (*ended)->graph;
        minify_->finish(outcome_of(**ended, shared->culprit));
        draw_smallest();
      });
  minification_ = shared;
  minify_->start();
  minify_->set_graph(current_->scene, current_->code);
}

void Workbench::take_tries() {
  std::vector<views::MinifyStep> steps;
  {
    const std::lock_guard lock(minification_->mutex);
    steps.swap(minification_->steps);
  }
  if (!steps.empty()) minification_->smallest = steps.back().graph;
  minify_->add(steps);
}

void Workbench::show_tries() {
  if (!minification_) return;
  draw_smallest();
  if (!minify_->running()) return;
  take_tries();
  if (!jobs_.running(minification_->job))
    minify_->fail(tr("Cancelled at %1").arg(minify_->log().empty() ? tr("the first try") : minify_->log().headline()));
}

// One picture at a time: when the graph shrinks faster than it is drawn, steps between are left out.
void Workbench::draw_smallest() {
  const auto of = minification_;
  if (!of->smallest || of->drawn == of->smallest || jobs_.running(of->draw_job)) return;
  of->drawn = of->smallest;
  of->draw_job = jobs_.start<Drawn>(
      tr("Draw what is left"), "draw:minify", this,
      [graph = of->smallest, width = text_width_](const Progress&) -> Result<Drawn> {
        views::PictureOptions options;
        options.text_width = width;
        const std::string code = print(*graph, {.annotations = true, .origins = false, .deletions = false});
        return Drawn{views::make_scene(graph, options), std::make_shared<views::CodeDocument>(text(code), graph.get())};
      },
      [this, of](Result<Drawn> drawn) {
        if (drawn && of == minification_) minify_->set_graph(drawn->scene, drawn->code);
      });
}

void Workbench::ask_repro_folder() {
  auto* dialog = new QFileDialog(&window_, tr("Save the repro in a new folder"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->selectFile("repro");
  connect(dialog, &QFileDialog::fileSelected, this, &Workbench::save_repro);
  dialog->open();
}

void Workbench::save_repro(const QString& folder) {
  if (!minification_ || !minification_->reduced) return;
  jobs_.start<std::string>(
      tr("Save the repro in %1").arg(QFileInfo(folder).fileName()), "repro", this,
      [done = minification_, folder](const Progress&) -> Result<std::string> {
        minify::ReproText words = done->tool.words;
        words.culprit = done->culprit;
        TRY_DO(minify::write_repro(*done->reduced, folder.toStdString(), words));
        return folder.toStdString();
      },
      [this, of = minification_](Result<std::string> done) {
        if (!done) return report(done.error());
        window_.log(tr("Wrote %1").arg(text(*done)));
        if (of == minification_) minify_->set_saved(text(*done));
      });
}

void Workbench::open_smallest() {
  if (!minification_ || !minification_->reduced) return;
  const QString parent = minification_->parent;
  auto of = documents_.find(parent);
  if (of == documents_.end()) return;
  const auto& reduced = minification_->reduced;
  QString key;
  for (int n = 1; key.isEmpty() || documents_.contains(key); ++n) key = QString("%1/minified %2").arg(parent).arg(n);
  auto document = std::make_unique<Document>();
  document->path = of->second->path;
  document->key = key;
  document->title = tr("%1 minified to %2")
                        .arg(of->second->title, views::count_text(static_cast<std::int64_t>(reduced->calls), "call"));
  document->kind = of->second->kind;
  document->artefact = Artefact::of_graph(std::shared_ptr<const Graph>(reduced, reduced->graph.get()));
  document->artefact.kind = document->kind;
  auto companion = std::make_shared<Companion>();
  companion->sample_inputs = reduced->inputs;
  document->artefact.companion = std::move(companion);
  add_document(std::move(document), {}, tr("minified"), parent);
  window_.tree()->expand(tree_.find(parent));
  window_.show_page(window_.graph());
  show(key);
}

}  // namespace partita
