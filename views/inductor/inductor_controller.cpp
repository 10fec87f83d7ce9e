#include "views/inductor/inductor_controller.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QFileInfo>
#include <algorithm>
#include <cmath>

#include "core/minify/repro.h"
#include "core/minify/start.h"
#include "core/store/store.h"
#include "views/code/code_controller.h"
#include "views/frame/workbench.h"
#include "views/graph/graph_controller.h"
#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/minify/minify_controller.h"

namespace partita::views {
namespace {

struct Found {
  std::vector<Located> graphs;
  QString not_kept;  ///< why the store does not have it; empty: it does, or there is no store
};

/// What a repro says of the failure.
minify::Failure failure_of(const Located& found) {
  minify::Failure failure;
  failure.what = found.headline();
  failure.message = found.certainty();
  return failure;
}

}  // namespace

extern const MakeView make_inductor_view = make_view<InductorController, &WorkbenchTools::locate>;

InductorController::InductorController(Workbench& bench) : WidgetController(bench) {
  connect(view_, &InductorView::find_asked, this, &InductorController::show);
  connect(view_, &InductorView::cancel_asked, this, [this] { bench_.jobs().cancel(job_); });
  connect(view_, &InductorView::graph_chosen, this, &InductorController::show_code);
  connect(view_, &InductorView::code_wanted, this, &InductorController::show_code);
  connect(view_, &InductorView::minify_asked, this, &InductorController::minify);
  connect(view_, &InductorView::repro_asked, this, &InductorController::ask_repro_folder);
  connect(view_, &InductorView::command_asked, this, &InductorController::copy_command);
  connect(view_->evidence(), &TablePanel::node_chosen, &bench.selection(), &Selection::select_node);
  connect(&bench.jobs(), &JobTracker::changed, this, [this] {
    if (!view_->running()) return;
    for (const JobRow& row : bench_.jobs().rows())
      if (row.id == job_) view_->say(tr("%1, %2").arg(row.at, seconds_text(std::floor(row.seconds))));
  });
  connect(&bench.jobs(), &JobTracker::finished, this, [this](int id) {
    if (id != job_) return;
    job_ = 0;
    view_->set_running(false);
    view_->say(tr("cancelled"));
  });
  connect(&bench.documents(), &Documents::closed, this, [this](const QString& path) {
    std::erase_if(searches_, [&](const auto& search) { return search.first.startsWith(path + "#"); });
  });
  bench.window().add_command("Graph", tr("Find what inductor does wrong"), QKeySequence("Ctrl+I"), [this] { go(); });
}

QStringList InductorController::words_of(const LocateRequest& request) const {
  QStringList words{"locate"};
  words << inputs_words(text(request.inputs));
  if (request.against != LocateRequest().against) words << "--against" << shell_word(text(request.against));
  if (request.train) words << "--train";
  if (request.switches) words << "--switches";
  return words;
}

QStringList InductorController::command() const {
  const Search* done = last();
  return on_screen() && done ? words_of(done->request) : QStringList();
}

const InductorController::Search* InductorController::last() const {
  const Document* document = bench_.documents().current();
  const auto found = document ? searches_.find(document->key) : searches_.end();
  return found == searches_.end() ? nullptr : &found->second;
}

void InductorController::wait_for(const Document& document) {
  if (shown_ == document.key) return;
  shown_.clear();
  view_->clear();
}

void InductorController::set_document(const Document& document) {
  if (const Search* done = last(); done && std::exchange(shown_, document.key) != document.key) {
    view_->set_found(done->found);
    view_->say({});
  }
  if (view_->shows_code() && on_screen()) show_code();
}

void InductorController::find(const LocateRequest& request) {
  const Document* document = bench_.documents().current_graph();
  if (!document) return;
  raise();
  if (view_->running()) return;
  view_->set_running(true);
  view_->say(tr("starting PyTorch…"));
  const CheckRow row{document->path.toStdString(), document->id.toStdString(), "locate", false, {}};
  job_ = bench_.jobs().start<Found>(
      tr("Find what inductor does wrong with %1").arg(document->title), "locate", this,
      [request, row, artefact = document->artefact, locate = bench_.tools().locate,
       store = bench_.tools().store_file](const Progress& progress) -> Result<Found> {
        Found found;
        TRY(found.graphs, locate(artefact, request, progress));
        CheckRow kept = row;
        kept.ok = std::ranges::all_of(found.graphs, &Located::clean);
        kept.report = to_json(std::vector{LocatedCompilation{row.graph, found.graphs, {}}})
                          .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
        if (Status added = keep_in_store(store, kept); !added) found.not_kept = text(added.error().line());
        return found;
      },
      [this, request, key = document->key](Result<Found> found) {
        job_ = 0;
        view_->set_running(false);
        if (!found) {
          view_->say(text(found.error().line()));
          return bench_.window().report(found.error());
        }
        if (!found->not_kept.isEmpty()) bench_.window().log(tr("Not kept for later: %1").arg(found->not_kept), true);
        take(key, {request, std::move(found->graphs)});
      });
}

void InductorController::take(const QString& key, Search done) {
  Document* document = bench_.documents().find(key);
  if (!document) return;
  searches_[key] = std::move(done);
  note_facts(*document);
  if (document != bench_.documents().current()) return;
  shown_.clear();
  set_document(*document);
  bench_.screen().facts_changed(*document);
  const Located* wrong = view_->found();
  bench_.window().set_status(wrong ? view_->headline() : tr("There is no graph that inductor would get"), {});
  if (!wrong || wrong->clean()) return;
  auto& graph = bench_.views().get<GraphController>();
  if (QAction* colour = graph.overlay_action(OverlayKind::Error); colour->isEnabled()) colour->trigger();
  if (const auto nodes = wrong->given_nodes(); !nodes.empty()) bench_.selection().select_node(text(nodes.front()));
}

/// The errors of inductor's buffers, in place of those that a comparison found.
void InductorController::note_facts(Document& document) const {
  for (auto& [node, facts] : document.facts) {
    const NodeFacts none;
    facts.error = none.error;
    facts.wrong = none.wrong;
    facts.inherited_from = none.inherited_from;
    facts.tolerance = none.tolerance;
  }
  for (const Located& found : searches_.at(document.key).found) {
    double worst = 0;
    for (const JudgedNode& judged : found.judged_nodes()) {
      NodeFacts& facts = document.facts[judged.node];
      facts.error = std::max(facts.error, judged.error);
      facts.wrong = facts.wrong || judged.wrong;
      if (judged.wrong) worst = std::max(worst, judged.error);
    }
    if (found.clean()) continue;
    for (const std::string& node : found.given_nodes()) {  // one within a fused kernel has no buffer of its own
      NodeFacts& facts = document.facts[node];
      facts.wrong = true;
      if (facts.error < 0) facts.error = worst;
    }
  }
}

/// The kernel's code in place of the graph's, or the graph's again.
void InductorController::show_code() {
  const Document* document = bench_.documents().current();
  if (!document) return;
  auto& code = bench_.views().get<CodeController>();
  const Located* found = view_->found();
  if (!found || !view_->shows_code()) return code.set_document(*document);
  code.show_code(std::make_shared<const CodeDocument>(text(found->kernel_code()), nullptr));
}

/// The search for the smallest graph that fails in this way.
MinifyRequest InductorController::minification() const {
  const Search* done = last();
  const Located* found = view_->found();
  MinifyRequest request;
  request.check = found && found->verdict() == "exception" ? "crash" : "accuracy";
  if (done) request.compiler = done->request.against, request.inputs = done->request.inputs;
  return request;
}

void InductorController::minify() {
  auto& minifier = bench_.views().get<MinifyController>();
  minifier.view()->choose(minification());
  minifier.minify(minification());
}

void InductorController::ask_repro_folder() {
  save_dialog(&bench_.window(), tr("Write the repro into a new folder"), "repro", this,
              &InductorController::write_repro)
      ->open();
}

void InductorController::write_repro(const QString& folder) {
  const Document* document = bench_.documents().current_graph();
  const Located* found = view_->found();
  if (!document || !found || !bench_.tools().minifier) return;
  minify::Culprit culprit;
  if (const std::string kernel = found->kernel_name(); !kernel.empty())
    culprit = {{}, kernel, found->kernel_code() + "\n"};
  bench_.jobs().start<std::string>(
      tr("Write the repro into %1").arg(QFileInfo(folder).fileName()), "repro", this,
      [folder = folder.toStdString(), artefact = document->artefact, asked = minification(), culprit,
       failure = failure_of(*found), minifier = bench_.tools().minifier](const Progress&) -> Result<std::string> {
        TRY(const MinifyTool tool, minifier(artefact, asked));
        TRY(const TensorFile io, read_inputs(asked.inputs));
        TRY(minify::Start start, minify::make_start(artefact, io, 0, tool.functional));
        minify::MinifyResult whole;
        whole.start_calls = whole.calls = minify::with_inputs(start.graph, start.inputs, 0).calls;
        whole.graph = start.graph;
        whole.inputs = std::move(start.inputs);
        whole.failure = failure;
        minify::ReproText words = tool.words;
        words.culprit = culprit;
        TRY_DO(minify::write_repro(whole, folder, words));
        return folder;
      },
      [this](Result<std::string> done) {
        if (!done) return bench_.window().report(done.error());
        bench_.window().tell(tr("Wrote %1").arg(text(*done)));
      });
}

void InductorController::copy_command() {
  const Document* document = bench_.documents().current();
  const Search* done = last();
  if (!document || !done) return;
  QStringList words{"partita"};
  words += words_of(done->request);
  words.insert(2, shell_word(document->path));
  if (!document->id.isEmpty()) words << "--graph" << shell_word(document->id);
  QApplication::clipboard()->setText(words.join(' '));
  bench_.window().tell(tr("Copied: %1").arg(words.join(' ')));
}

}  // namespace partita::views
