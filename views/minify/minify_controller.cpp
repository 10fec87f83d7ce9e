// Minifies in a job. The window takes its tries, under a mutex, when the job tracker ticks, and draws the smallest
// graph, one picture at a time. The result is saved as a repro or opened as a document.
#include "views/minify/minify_controller.h"

#include <QDesktopServices>
#include <QFileInfo>
#include <QUrl>
#include <mutex>

#include "core/aot/graph_io.h"
#include "core/ir/print.h"
#include "core/store/store.h"
#include "views/frame/workbench.h"
#include "views/look/arrange.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

struct Drawn {
  Overview overview;
  std::shared_ptr<const CodeDocument> code;
};

}  // namespace

/// What the thread that minifies and the window share, and the result.
struct MinifyController::Minification {
  minify::Steering steering;
  std::mutex mutex;
  std::vector<minify::Event> steps;  ///< not shown yet; guarded by the mutex

  MinifyTool tool;
  QString parent;  ///< key of the document that is minified
  int job = 0;     ///< id in the job tracker
  std::shared_ptr<const Graph> smallest;
  std::shared_ptr<const minify::MinifyResult> reduced;  ///< null: not ended yet
  minify::Culprit culprit;
  QStringList notes;  ///< what went wrong beside it, for the log
};

extern const MakeView make_minify_view = make_view<MinifyController, &WorkbenchTools::minifier>;

MinifyController::MinifyController(Workbench& bench) : WidgetController(bench) {
  view_->set_choices({"accuracy", "crash"}, bench.tools().backend_names(), bench.tools().suspect);
  connect(view_, &MinifyView::run_asked, this, &MinifyController::minify);
  connect(view_, &MinifyView::pause_asked, this, [this](bool pause) {
    if (last_) last_->steering.pause = pause;
  });
  connect(view_, &MinifyView::accept_asked, this, [this] {
    if (last_) last_->steering.accept_now = true;
  });
  connect(view_, &MinifyView::cancel_asked, this, [this] {
    if (last_) bench_.jobs().cancel(last_->job);
  });
  connect(view_, &MinifyView::save_asked, this, &MinifyController::ask_repro_folder);
  connect(view_, &MinifyView::open_asked, this, &MinifyController::open_smallest);
  connect(view_->graph(), &GraphView::fold_asked, this, &MinifyController::fold);
  connect(view_, &MinifyView::folder_asked, this,
          [](const QString& folder) { QDesktopServices::openUrl(QUrl::fromLocalFile(folder)); });
  bench.window().add_command("File", tr("Save the repro…"), {}, [this] { ask_repro_folder(); });
  // The tracker tells ten times a second, so that a fast minification does not flood the event loop.
  connect(&bench.jobs(), &JobTracker::changed, this, &MinifyController::show_tries);
  bench.offer(bench.window().add_command("Graph", tr("Minify"), QKeySequence("Ctrl+M"), [this] { show_page(); }),
              tr("Minify"), [](const Document& document) { return document.graph != nullptr; });
}

QStringList MinifyController::command() const {
  const Document* document = bench_.documents().current_graph();
  if (!on_screen() || !document) return {};
  const MinifyRequest request = view_->request();
  QStringList words{"minify"};
  if (const auto tool = bench_.tools().minifier(document->artefact, request)) words << text(tool->options);
  if (!request.inputs.empty()) words << "--inputs" << shell_word(text(request.inputs));
  return words << "-o" << "repro";
}

// A minification belongs to the graph it was made from; another one covers it.
void MinifyController::set_document(const Document& document) {
  if (on_screen() && last_ && last_->parent != document.key) bench_.window().close_page();
}

void MinifyController::show_page() {
  const Document* document = bench_.documents().current();
  if (last_ && document && last_->parent != document->key && !view_->running()) {
    last_.reset();
    view_->clear();
    bench_.window().name_page(view_, {});
  }
  raise();
  if (!last_ && document && document->graph) draw(document->graph);
  view_->setFocus();
}

void MinifyController::minify(const MinifyRequest& request) {
  const Document* document = bench_.documents().current_graph();
  if (!document) return;
  raise();
  if (view_->running()) return;
  auto tool = bench_.tools().minifier(document->artefact, request);
  if (!tool) return view_->fail(text(tool.error().line()));
  auto shared = std::make_shared<Minification>();
  shared->tool = *tool;
  shared->parent = document->key;
  using Ended = std::shared_ptr<const minify::MinifyResult>;
  CheckRow row{document->path.toStdString(), document->id.toStdString(), "minify", false, {}};
  shared->job = bench_.jobs().start<Ended>(
      tr("Minify %1").arg(document->title), "minify", this,
      [shared, tool = *std::move(tool), artefact = document->artefact, io_path = request.inputs, row,
       store = bench_.tools().store_file](const Progress& progress) -> Result<Ended> {
        progress.at(-1, "inputs");
        TRY(const TensorFile io, read_inputs(io_path));
        TRY(minify::Start start, minify::make_start(artefact, io, 0, tool.functional));
        minify::ReduceOptions how;
        how.jobs = tool.jobs;
        how.progress = &progress;
        how.steering = &shared->steering;
        if (tool.memory) how.memory = tool.memory(start);
        how.event = [shared](const minify::Event& e) {
          const std::lock_guard lock(shared->mutex);
          shared->steps.push_back(e);
        };
        TRY(minify::MinifyResult reduced, minify::reduce(start.graph, std::move(start.inputs), tool.oracle, how));
        if (tool.culprit) {
          progress.at(-1, "who is to blame");
          auto culprit = tool.culprit(reduced, progress);
          if (culprit)
            shared->culprit = *std::move(culprit);
          else
            shared->notes << text(culprit.error().line());
        }
        CheckRow kept = row;
        if (tool.report) kept.report = tool.report(reduced, shared->culprit);
        if (Status added = keep_in_store(store, kept); !added)
          shared->notes << tr("Not kept for later: %1").arg(text(added.error().line()));
        return std::make_shared<const minify::MinifyResult>(std::move(reduced));
      },
      [this, shared](Result<Ended> ended) {
        take_tries();
        for (const QString& note : shared->notes) bench_.window().log(note, true);
        if (!ended) return view_->fail(text(ended.error().line()));
        shared->reduced = *ended;
        shared->smallest = (*ended)->graph;
        view_->finish(**ended, shared->culprit);
        draw_smallest();
      });
  last_ = shared;
  bench_.window().name_page(view_, bench_.documents().place_of(*document));
  view_->start();
  draw(document->graph);
}

void MinifyController::take_tries() {
  std::vector<minify::Event> steps;
  {
    const std::lock_guard lock(last_->mutex);
    steps.swap(last_->steps);
  }
  if (!steps.empty()) last_->smallest = steps.back().graph;
  view_->add(steps);
}

void MinifyController::show_tries() {
  if (!last_) return;
  draw_smallest();
  if (!view_->running()) return;
  take_tries();
  if (!bench_.jobs().running(last_->job))
    view_->fail(tr("Cancelled at %1").arg(view_->log().empty() ? tr("the first try") : view_->log().headline()));
}

// One picture at a time: when the graph shrinks faster than it is drawn, steps between are left out.
void MinifyController::draw_smallest() {
  if (last_->smallest && drawn_ != last_->smallest && !bench_.jobs().running(draw_job_)) draw(last_->smallest);
}

void MinifyController::draw(std::shared_ptr<const Graph> graph, std::optional<std::unordered_set<std::string>> folded) {
  drawn_ = graph;
  draw_job_ = bench_.jobs().start<Drawn>(
      tr("Draw what is left"), "draw:minify", this,
      [graph, folded = std::move(folded), width = bench_.drawing().text_width(),
       room = view_->graph()->room()](const Progress&) -> Result<Drawn> {
        PictureOptions options;
        options.text_width = width;
        const std::string code = print(*graph, {.annotations = true, .origins = false, .deletions = false});
        Drawn drawn{{}, std::make_shared<CodeDocument>(text(code), graph.get())};
        if (folded) {
          options.folded = *folded;
          drawn.overview = {*folded, make_scene(graph, options)};
        } else {
          drawn.overview = fitting(graph, options, room, true);
        }
        return drawn;
      },
      [this, graph](Result<Drawn> drawn) {
        if (!drawn || graph != drawn_) return;
        folded_ = std::move(drawn->overview.folded);
        view_->set_graph(drawn->overview.scene, drawn->code);
      });
}

void MinifyController::fold(const QString& frame_key) {
  const std::string key = frame_key.toStdString();
  auto folded = folded_;
  if (folded.erase(key) == 0) folded.insert(key);
  draw(drawn_, std::move(folded));
}

void MinifyController::ask_repro_folder() {
  if (!last_ || !last_->reduced) return bench_.window().tell(tr("There is no repro yet: Ctrl+M minifies a graph"));
  save_dialog(&bench_.window(), tr("Save the repro in a new folder"), "repro", this, &MinifyController::save_repro)
      ->open();
}

void MinifyController::save_repro(const QString& folder) {
  if (!last_ || !last_->reduced) return;
  bench_.jobs().start<std::string>(
      tr("Save the repro in %1").arg(QFileInfo(folder).fileName()), "repro", this,
      [done = last_, folder](const Progress&) -> Result<std::string> {
        minify::ReproText words = done->tool.words;
        words.culprit = done->culprit;
        TRY_DO(minify::write_repro(*done->reduced, folder.toStdString(), words));
        return folder.toStdString();
      },
      [this, of = last_](Result<std::string> done) {
        if (!done) return bench_.window().report(done.error());
        bench_.window().tell(tr("Wrote %1").arg(text(*done)));
        if (of == last_) view_->set_saved(text(*done));
      });
}

void MinifyController::open_smallest() {
  if (!last_ || !last_->reduced) return;
  const QString parent = last_->parent;
  const Document* of = bench_.documents().find(parent);
  if (!of) return;
  const auto& reduced = last_->reduced;
  QString key;
  for (int n = 1; key.isEmpty() || bench_.documents().find(key); ++n)
    key = QString("%1/minified %2").arg(parent).arg(n);
  auto document = std::make_unique<Document>();
  document->path = of->path;
  document->key = key;
  document->title =
      tr("%1 minified to %2").arg(of->title, count_text(static_cast<std::int64_t>(reduced->calls), "call"));
  document->kind = of->kind;
  document->artefact = Artefact::of_graph(std::shared_ptr<const Graph>(reduced, reduced->graph.get()));
  document->artefact.kind = document->kind;
  auto companion = std::make_shared<Companion>();
  companion->sample_inputs = reduced->inputs;
  document->artefact.companion = std::move(companion);
  bench_.documents().add(std::move(document), {}, tr("minified"), parent);
  bench_.views().show("graph");
  bench_.screen().show(key);
}

}  // namespace partita::views
