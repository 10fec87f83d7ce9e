// Runs the passes of the graph's stage as a job, with a check of the numbers if asked, and shows the chosen step as
// picture and code. Skipping or moving a pass patches the configuration and runs anew.
#include "views/passes/passes_controller.h"

#include "core/aot/pipeline.h"
#include "core/compare/check_passes.h"
#include "core/passes/run_passes.h"
#include "views/code/code_controller.h"
#include "views/frame/workbench.h"
#include "views/graph/graph_controller.h"
#include "views/look/format.h"

namespace partita::views {

extern const MakeView make_passes_view = make_view<PassesController>;

PassesController::PassesController(Workbench& bench) : WidgetController(bench) {
  connect(view_, &PassesView::node_chosen, &bench.selection(), &Selection::select_node);
  connect(view_, &PassesView::run_asked, this, [this] { run(); });
  connect(view_, &PassesView::check_asked, this, [this] { run(true); });
  connect(view_, &PassesView::rewrites_asked, this, &PassesController::show_rewrites);
  connect(view_, &PassesView::skip_asked, this, &PassesController::skip);
  connect(view_, &PassesView::move_asked, this, &PassesController::move);
  connect(view_, &PassesView::reset_asked, this, &PassesController::reset);
  connect(view_, &PassesView::step_chosen, this, &PassesController::show_step);
  Window& window = bench.window();
  bench.offer(window.add_command("Graph", tr("Run the passes"), QKeySequence("Ctrl+P"), [this] { run(); }),
              tr("Passes"), [](const Document& document) { return document.graph != nullptr; });
  window.add_command("Graph", tr("Run the passes and check the numbers"), {}, [this] { run(true); });
  window.add_command("Graph", tr("Next pass"), QKeySequence("Ctrl+Right"), [this] { view_->go_by(1, false); });
  window.add_command("Graph", tr("Previous pass"), QKeySequence("Ctrl+Left"), [this] { view_->go_by(-1, false); });
  window.add_command("Graph", tr("Next pass that changed something"), QKeySequence("Ctrl+Shift+Right"),
                     [this] { view_->go_by(1, true); });
  window.add_command("Graph", tr("Previous pass that changed something"), QKeySequence("Ctrl+Shift+Left"),
                     [this] { view_->go_by(-1, true); });
}

bool PassesController::ran_on_current() const {
  return bench_.documents().current() && history_of_ == bench_.documents().current()->key && view_->history();
}

void PassesController::set_document(const Document& document) {
  if (history_of_ == document.key || !view_->history()) return;
  history_of_.clear();
  view_->set_history(nullptr);
}

std::vector<Controller::OverlaySource> PassesController::overlays() {
  return {{OverlayKind::Pass, [this] { run(); },
           ran_on_current() ? tr("No pass changed a node of this graph")
                            : tr("The passes have not run yet: Graph > Run the passes (Ctrl+P)")}};
}

QStringList PassesController::command() const {
  if (!on_screen() || !ran_on_current()) return {};
  QStringList words{"passes"};
  const Document* document = bench_.documents().current();
  if (document->id.isEmpty())  // made here by the flow
    words << "--train" << "--stage" << text(row_of(stage_of(document->kind)).passes);
  return words << "--print" << "changed";
}

void PassesController::run(bool check) {
  const Document* document = bench_.documents().current_graph();
  if (!document) return;
  raise();
  struct Made {
    std::shared_ptr<const PassHistory> history;
    std::optional<Diagnostic> refused;  ///< why no compiler takes the graph
    int wrong = -1;                     ///< the step after which the numbers are others
  };
  bench_.jobs().start<Made>(
      tr("Passes of %1").arg(document->title), "passes:" + document->key, this,
      [graph = document->graph, artefact = document->artefact, stage = stage_of(document->kind),
       folded = document->folded, width = bench_.drawing().text_width(), inputs_of = bench_.tools().inputs,
       io = bench_.views().inputs(), check](const Progress& progress) -> Result<Made> {
        PassContext context;
        PipelineOptions options;
        options.snapshots = true;
        options.progress = &progress;
        auto copy = graph->clone();
        std::vector<Pass> passes = passes_of(stage);
        Made made;
        if (stage == Stage::PostGradPasses)  // as every compiler begins
          if (Status known = prepare_post_grad(*copy); !known) made.refused = std::move(known).error();
        CheckedRun done;
        if (check) {
          TRY(const std::vector<Value> inputs, inputs_of(*copy, artefact, io));
          TRY(done, run_passes_checked(*copy, passes, context, inputs, options));
        } else {
          TRY(done.run, run_passes(*copy, passes, context, options));
        }
        auto history = std::make_shared<PassHistory>(make_history(done.run, width, folded));
        for (PassStep& step : history->steps)
          if (const auto numbers = done.numbers.find(step.name.toStdString()); numbers != done.numbers.end())
            step.off_by = numbers->second.max_abs;
        if (done.failure) {
          const PassFailure& f = *done.failure;
          made.wrong = static_cast<int>(history->steps.size()) - 1;
          history->steps.back().wrong =
              tr("changed the numbers of %1 at %2%3")
                  .arg(text(f.difference.name), text(f.node),
                       f.rewrite
                           ? tr(": rewrite %1, %2 at %3").arg(*f.rewrite + 1).arg(text(f.step.rule), text(f.step.node))
                           : QString());
        }
        made.history = std::move(history);
        return made;
      },
      [this, key = document->key, check](Result<Made> made) {
        if (!made) return bench_.window().report(made.error());
        const std::shared_ptr<const PassHistory>& history = made->history;
        if (Document* of = bench_.documents().find(key))
          for (const auto& [node, pass] : pass_of_nodes(*history, 0)) of->facts[node].pass = pass;
        if (!bench_.documents().current() || bench_.documents().current()->key != key)
          return;  // another graph is named above
        history_of_ = key;
        const QString chosen = bench_.selection().spot().node;
        view_->set_history(history, made->wrong);
        if (!chosen.isEmpty() && made->wrong < 0)
          bench_.selection().select_node(chosen);  // rather than the first change
        bench_.views().get<GraphController>().refresh_overlays();
        if (made->refused)
          bench_.window().set_status(tr("No compiler takes this graph: %1").arg(text(made->refused->line())), {});
        else if (check)
          bench_.window().set_status(made->wrong < 0 ? tr("The numbers agree after every pass")
                                                     : history->steps.back().name + " " + history->steps.back().wrong,
                                     {});
      });
}

void PassesController::show_rewrites(int step) {
  if (!bench_.documents().current_graph() || !ran_on_current()) return;
  auto history = std::make_shared<PassHistory>(*view_->history());
  if (drop_rewrites(*history, step)) return view_->set_history(history, step);
  add_rewrites(*history, step);
  view_->set_history(history, step + 1);
}

void PassesController::draw(int step) {
  const Document* document = bench_.documents().current_graph();
  auto history = std::make_shared<PassHistory>(*view_->history());
  const QString pass = history->steps[static_cast<std::size_t>(pass_step(*history, step))].name;
  bench_.jobs().start<std::shared_ptr<const PassHistory>>(
      tr("Rewrites of %1").arg(pass), "rewrites:" + document->key, this,
      [history, step, name = pass.toStdString(), stage = stage_of(document->kind), folded = document->folded,
       width = bench_.drawing().text_width()](const Progress& progress) -> Result<std::shared_ptr<const PassHistory>> {
        const std::vector<Pass> passes = passes_of(stage);
        const auto found = std::ranges::find(passes, name, &Pass::name);
        CHECK(found != passes.end(), "a pass of another stage");
        TRY_DO(draw_rewrite(*history, step, *found, width, folded, progress));
        return std::shared_ptr<const PassHistory>(history);
      },
      [this, step, key = document->key](Result<std::shared_ptr<const PassHistory>> made) {
        if (!made) return bench_.window().report(made.error());
        // The user may have gone on, hidden the rewrites or run the passes anew.
        const bool same = ran_on_current() && history_of_ == key && view_->step() == step &&
                          view_->history()->steps.size() == (*made)->steps.size() &&
                          view_->history()->steps[static_cast<std::size_t>(step)].name ==
                              (*made)->steps[static_cast<std::size_t>(step)].name;
        if (same) view_->set_history(*made, step);
      });
}

void PassesController::configure(const ConfigPatches& patches) {
  const auto changed = patched_config(patches);
  if (!changed) return bench_.window().report(changed.error());
  set_config(*changed);
  run();
}

void PassesController::skip(const QString& pass) {
  PassNames names = configured_disabled();
  if (names.erase(pass.toStdString()) == 0) names.insert(pass.toStdString());
  configure({{"disable_passes", texts(names).join(',').toStdString()}});
}

void PassesController::move(const QString& pass, int places) {
  const Document* document = bench_.documents().current_graph();
  if (!document) return;
  QStringList names = texts(passes_of(stage_of(document->kind)), &Pass::name);
  const qsizetype from = names.indexOf(pass), to = from + places;
  if (from < 0 || to < 0 || to >= names.size()) return;
  names.move(from, to);
  configure({{"pass_order", names.join(',').toStdString()}});
}

void PassesController::show_step(int step) {
  if (!ran_on_current()) return;
  const PassHistory& history = *view_->history();
  const PassStep& chosen = history.steps[static_cast<std::size_t>(step)];
  if (!chosen.scene) return chosen.rewrite ? draw(step) : void();
  Facts facts = bench_.documents().current()->facts;
  for (auto& [node, fact] : facts) fact.pass.clear();
  for (const auto& [node, pass] : pass_of_nodes(history, step)) facts[node].pass = pass;
  auto& graph = bench_.views().get<GraphController>();
  graph.show_step(chosen.scene, chosen.diff ? chosen.diff->marks : std::unordered_map<std::string, Change>{}, facts,
                  chosen.removed);
  bench_.views().get<CodeController>().show_code(chosen.code);
  QString first;
  if (chosen.diff)
    for (const DiffLine& line : chosen.diff->lines)
      if (first.isEmpty() && (line.change == Change::Added || line.change == Change::Changed)) first = text(line.node);
  const QString name = step == 0 ? tr("before the passes") : tr("after %1").arg(chosen.name);
  bench_.screen().show_step(name, chosen.scene->picture.graph, std::move(facts));
  if (!first.isEmpty()) bench_.selection().select_node(first);
  bench_.window().set_status(
      tr("%1: %2").arg(name, count_text(static_cast<std::int64_t>(chosen.scene->picture.graph->size()), "node")), {});
}

}  // namespace partita::views
