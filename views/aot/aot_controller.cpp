#include "views/aot/aot_controller.h"

#include <algorithm>
#include <cmath>

#include "core/aot/graph_io.h"
#include "core/aot/wrapper.h"
#include "core/load/records.h"
#include "core/partition/read_cut.h"
#include "views/frame/workbench.h"
#include "views/graph/graph_controller.h"
#include "views/look/format.h"

namespace partita::views {

extern const MakeView make_aot_view = make_view<AotController>;

namespace {

double budget_of(const Document& document) {
  return document.cut ? document.cut->memory_budget : config().memory_budget;
}

bool sizes_known(const Document& document) {
  return !document.scene || document.scene->picture.unknown.of.empty();
}

/// What the page shows forward and backward of.
struct Step {
  std::optional<Artefact> forward, backward;  ///< PyTorch's
  std::shared_ptr<const Graph> joint;         ///< read already, or
  std::optional<Artefact> joint_beside;       ///< beside the document
  PartitionOptions options;

  bool has_theirs() const { return forward && backward; }
  bool has_ours() const { return joint || joint_beside; }
};

Step step_of(const Document& document, const Documents& documents) {
  Step step;
  std::vector<const Artefact*> all;
  for (const auto& [key, each] : documents.all())
    if (each->path == document.path && !each->id.isEmpty() && each->artefact.is_graph()) all.push_back(&each->artefact);
  std::ranges::sort(all, {}, [](const Artefact* a) { return a->where.line; });
  if (!document.id.isEmpty()) {
    const StepGraphs graphs = graphs_beside(all, document.artefact);
    if (graphs.forward) step.forward = *graphs.forward;
    if (graphs.backward) step.backward = *graphs.backward;
    if (graphs.joint) step.joint_beside = *graphs.joint;
  }
  if (document.cut) step.joint = document.graph;
  step.options = partition_options(document);
  return step;
}

struct BothCuts {
  std::shared_ptr<Partition> theirs, ours;
  std::optional<Diagnostic> problem;  ///< why one of them is missing
};

BothCuts cut_both(const Step& step) {
  BothCuts cuts;
  const auto keep = [&](std::shared_ptr<Partition>& to, Result<Partition> made) {
    if (made)
      to = std::make_shared<Partition>(*std::move(made));
    else
      cuts.problem = std::move(made).error();
  };
  if (step.has_theirs())
    keep(cuts.theirs, [&]() -> Result<Partition> {
      TRY(const auto forward, step.forward->graph());
      TRY(const auto backward, step.backward->graph());
      return read_cut(*forward, *backward);
    }());
  if (step.has_ours())
    keep(cuts.ours, [&]() -> Result<Partition> {
      if (step.joint) return partition(*step.joint, step.options);
      TRY(const auto joint, step.joint_beside->graph());
      return partition(*joint, step.options);
    }());
  return cuts;
}

QString told_of(const BothCuts& cuts, const Step& step) {
  QStringList lines;
  const auto add = [&](const QString& whose, const Partition& cut, const QString& under) {
    lines
        << QString("%1: %2%3").arg(whose, told_of(CutSummary::of(cut), unknown_bytes(*cut.forward, cut.saved)), under);
  };
  const auto percent = [](double budget) {
    return AotController::tr("; budget %1\u00a0%").arg(std::lround(budget * 100));
  };
  PartitionOptions logged = step.options;
  logged.memory_budget.reset();
  if (cuts.theirs)
    add(AotController::tr("PyTorch"), *cuts.theirs,
        logged.functorch && logged.functorch->contains("activation_memory_budget") ? percent(memory_budget_of(logged))
                                                                                   : QString());
  if (cuts.ours) add(AotController::tr("Ours"), *cuts.ours, percent(cuts.ours->memory_budget));
  if (cuts.problem) lines << text(cuts.problem->message);
  return lines.join('\n');
}

}  // namespace

AotController::AotController(Workbench& bench)
    : WidgetController(bench), slider_(bench.views().get<GraphController>().bar()->budget()) {
  connect(view_, &AotView::node_chosen, &bench.selection(), &Selection::select_node);
  connect(view_, &AotView::pin_asked, &bench.pins(), &PinHistory::pin);
  connect(view_, &AotView::fold_asked, this, &AotController::fold);
  connect(view_, &AotView::cut_asked, this, [this](bool theirs) {
    theirs_ = theirs;
    make_pair(view_->pair());
  });
  connect(slider_, &BudgetSlider::budget_chosen, this, &AotController::set_budget);
  connect(slider_, &BudgetSlider::curve_wanted, this, [this] {
    if (Document* document = bench_.documents().current_graph()) ask_budget_curve(*document);
  });
  Window& window = bench.window();
  if (bench.tools().joint)
    bench.offer(
        window.add_command("Graph", tr("Make the joint graph"), QKeySequence("Ctrl+J"), [this] { make_joint(); }),
        tr("Joint"), [](const Document& document) {
          constexpr ArtefactKind kinds[] = {ArtefactKind::Dynamo, ArtefactKind::PreGrad, ArtefactKind::Exported,
                                            ArtefactKind::Core, ArtefactKind::Graph};
          return document.graph && !document.cut && std::ranges::find(kinds, document.kind) != std::end(kinds);
        });
  window.add_command("Graph", tr("Forward and backward beside each other"), QKeySequence("Ctrl+B"), [this] { show(); });
  auto step = [slider = slider_](int by) { return [slider, by] { slider->setValue(slider->value() + by); }; };
  window.add_command("Graph", tr("Smaller memory budget"), QKeySequence("Ctrl+["), step(-1));
  window.add_command("Graph", tr("Larger memory budget"), QKeySequence("Ctrl+]"), step(1));
}

void AotController::show() {
  raise();
  view_->setFocus();
  make_pair(view_->pair());
}

void AotController::wait_for(const Document&) {
  shown_.clear();
  theirs_.reset();
  view_->set_pair(nullptr);
}

void AotController::set_document(const Document& document) {
  if (std::exchange(shown_, document.key) != document.key) view_->set_pair(nullptr);
  if (on_screen()) make_pair(view_->pair());
  slider_->set_curve(document.budget, sizes_known(document));
  slider_->set_budget(budget_of(document));
  slider_->set_held({});
  // The curve takes as many cuts as the slider has steps: seconds for a large graph, which waits until it is wanted.
  constexpr std::size_t kLarge = 3000;
  if (!document.graph || (document.graph->size() > kLarge && !on_screen())) return;
  ask_budget_curve(*bench_.documents().current());
  ask_step_bytes(document);
}

void AotController::fold(bool of_backward, const QString& frame_key) {
  auto folds = std::make_shared<AotPair>(*view_->pair());
  AotPair::Half& half = of_backward ? folds->backward : folds->forward;
  half.asked = true;
  const std::string key = frame_key.toStdString();
  if (half.folded.erase(key) == 0) half.folded.insert(key);
  make_pair(std::move(folds));
}

void AotController::make_pair(std::shared_ptr<const AotPair> folds) {
  const Document* document = bench_.documents().current();
  Step step = document ? step_of(*document, bench_.documents()) : Step();
  if (!document || (!document->cut && !step.has_theirs())) return view_->set_pair(nullptr);
  using Made = std::shared_ptr<const AotPair>;
  bench_.jobs().start<Made>(
      tr("Forward and backward of %1").arg(document->title), "aot", this,
      [step = std::move(step), wanted = theirs_.value_or(!document->cut), width = bench_.drawing().text_width(),
       room = view_->room(), folds = std::move(folds)](const Progress&) -> Result<Made> {
        const BothCuts cuts = cut_both(step);
        if (!cuts.theirs && !cuts.ours) return *cuts.problem;
        auto pair = std::make_shared<AotPair>();
        pair->theirs = cuts.theirs && (wanted || !cuts.ours);
        const std::shared_ptr<const Partition> kept = pair->theirs ? cuts.theirs : cuts.ours;
        if (cuts.theirs && cuts.ours) pair->values = compare_cuts(*cuts.theirs, *cuts.ours);
        pair->told = told_of(cuts, step);
        PictureOptions picture;
        picture.text_width = width;
        pair->cut = std::make_shared<CutSummary>(CutSummary::of(*kept));
        pair->unknown = unknown_bytes(*kept->forward, kept->saved);
        // What the user folded stays. Else another cut gets an overview of its own: where more is computed again, a
        // block may fall into a hundred pieces, and these side by side could not be read.
        const auto half = [&](const Graph* graph, const AotPair::Half* before) -> AotPair::Half {
          const std::shared_ptr<const Graph> shared(kept, graph);
          if (!before || !before->asked) return {fitting(shared, picture, room, true)};
          picture.folded.clear();
          picture.folded = carried_folds(before->folded, before->scene->picture, make_picture(shared, picture));
          return {{picture.folded, make_scene(shared, picture)}, true};
        };
        pair->forward = half(kept->forward.get(), folds ? &folds->forward : nullptr);
        pair->backward = half(kept->backward.get(), folds ? &folds->backward : nullptr);
        return Made(pair);
      },
      [this, key = document->key](Result<Made> pair) {
        if (!pair) return bench_.window().report(pair.error());
        if (!bench_.documents().current() || bench_.documents().current()->key != key) return;
        view_->set_pair(*pair);
        view_->select(bench_.selection().spot().node);
      });
}

void AotController::ask_step_bytes(const Document& document) {
  if (!document.cut || !sizes_known(document) || !bench_.tools().step_bytes) return;
  bench_.jobs().start<double>(
      tr("Memory of a step of %1").arg(document.title), "step:" + document.key, this,
      [graph = document.graph, artefact = document.artefact, options = partition_options(document),
       bytes = bench_.tools().step_bytes](const Progress& progress) {
        return bytes(artefact, *graph, options, progress);
      },
      [this, key = document.key, budget = budget_of(document)](Result<double> bytes) {
        const Document* current = bench_.documents().current();
        if (!current || current->key != key || budget_of(*current) != budget) return;
        slider_->setToolTip(
            bytes
                ? BudgetSlider::about()
                : tr("%1\nWhat a step holds is not known: %2").arg(BudgetSlider::about(), text(bytes.error().message)));
        if (bytes) slider_->set_held(*bytes);
      });
}

void AotController::make_joint() {
  const Document* document = bench_.documents().current_graph();
  if (!document || !bench_.tools().joint) return;
  struct Graphs {
    AotGraphs made;
    std::shared_ptr<const ExportedProgram>
        program;  ///< the archive's signature, for the joint graph; null without an archive
  };
  using Made = std::shared_ptr<Graphs>;
  bench_.jobs().start<Made>(
      tr("Joint graph of %1").arg(document->title), "joint:" + document->key, this,
      [graph = document->graph, artefact = document->artefact,
       joint = bench_.tools().joint](const Progress&) -> Result<Made> {
        auto graphs = std::make_shared<Graphs>();
        TRY(graphs->made, joint(*graph, artefact));
        if (artefact.program)
          graphs->program =
              std::make_shared<ExportedProgram>(program_of_joint(*graph, *artefact.program, graphs->made));
        return graphs;
      },
      [this, parent = document->key, path = document->path](Result<Made> made) {
        if (!made) return bench_.window().report(made.error());
        const Made graphs = *made;
        auto add = [&](const char* name, const QString& title, const Graph* product, ArtefactKind kind) {
          auto added = std::make_unique<Document>();
          added->path = path;
          added->key = parent + "/" + name;
          added->title = tr("%1, made here").arg(title);
          added->kind = kind;
          added->artefact = Artefact::of_graph(std::shared_ptr<const Graph>(graphs, product));
          added->artefact.kind = kind;
          if (kind != ArtefactKind::Backward) {
            added->artefact.program = graphs->program;  // saved values are no inputs
            for (const Wrapper& w : wrap_graphs(graphs->made))
              added->wrappers.emplace_back(text(name_of(w)), text(summary(w)));
          }
          if (!bench_.documents().find(added->key))
            bench_.documents().add(std::move(added), {}, text(kind_name(kind)), parent);
        };
        const AotGraphs& all = graphs->made;
        // On the graph before its passes, the view of passes shows what they do.
        if (const auto before = all.before_joint_passes())
          add("joint_before_passes", tr("joint before its passes"), before.get(), ArtefactKind::Joint);
        add("joint", tr("joint"), all.joint.get(), ArtefactKind::Joint);
        add("forward", tr("forward"), all.partition.forward.get(), ArtefactKind::Forward);
        add("backward", tr("backward"), all.partition.backward.get(), ArtefactKind::Backward);
        bench_.screen().show(parent + "/joint");
      });
}

void AotController::set_budget(double budget) {
  Document* document = bench_.documents().current();
  if (!document || !document->cut || budget_of(*document) == budget) return;
  document->memory_budget.reset();
  if (memory_budget_of(partition_options(*document)) != budget) document->memory_budget = budget;
  bench_.drawing().render(*document);
}

void AotController::ask_budget_curve(Document& document) {
  if (!document.cut || document.budget_asked == document.pins) return;
  document.budget_asked = document.pins;
  bench_.jobs().start<std::vector<BudgetPoint>>(
      tr("Memory budgets of %1").arg(document.title), "budget:" + document.key, this,
      [graph = document.graph, options = partition_options(document)](const Progress& progress) {
        return budget_curve(*graph, options, BudgetSlider::kSteps + 1, &progress);
      },
      [this, key = document.key](Result<std::vector<BudgetPoint>> curve) {
        if (!curve) return bench_.window().report(curve.error());
        Document* of = bench_.documents().find(key);
        if (!of) return;
        of->budget = *std::move(curve);
        if (bench_.documents().current() == of) slider_->set_curve(of->budget, sizes_known(*of));
      });
}

QStringList AotController::command() const {
  const Document* document = bench_.documents().current();
  if (const auto pair = view_->pair(); on_screen() && pair && (pair->theirs || !pair->values.empty()))
    return {"query", "cut"};
  if (document->pins.empty() && !document->memory_budget && !on_screen()) return {};
  const PartitionOptions options = partition_options(*document);
  QStringList words{"aot"};
  if (document->id.isEmpty()) words << "--as-run";  // made here
  for (const std::string& name : options.save) words << "--save" << shell_word(text(name));
  for (const std::string& name : options.recompute) words << "--recompute" << shell_word(text(name));
  if (document->memory_budget) words << "--memory-budget" << QString::number(*document->memory_budget);
  return words << "-o" << "out";
}

}  // namespace partita::views
