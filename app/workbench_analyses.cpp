// Workbench: passes, forward and backward beside each other.
#include <QTreeView>

#include "app/workbench.h"
#include "core/passes/pipeline.h"
#include "views/look/format.h"

namespace partita {

using views::text;

namespace {

PassStage stage_of(ArtefactKind kind) {
  switch (kind) {
    case ArtefactKind::Dynamo:
    case ArtefactKind::PreGrad:
    case ArtefactKind::Exported:
      return PassStage::PreGrad;
    case ArtefactKind::Joint:
      return PassStage::Joint;
    default:
      return PassStage::PostGrad;
  }
}

}  // namespace

void Workbench::wire_analyses() {
  passes_ = new views::PassesView;
  aot_ = new views::AotView;
  coverage_ = new views::CoverageView;
  wire_comparison();
  wire_minifier();
  wire_run();
  for (views::InputsBox* box : {compare_->inputs(), run_->inputs(), minify_->inputs()})
    connect(box, &views::InputsBox::chosen, this, &Workbench::set_inputs);
  window_.add_bottom(passes_, tr("Passes"));
  if (!tools_.store_file.empty()) window_.add_bottom(history_, tr("History"));
  window_.add_page(aot_, tr("forward and backward"));
  window_.set_pair_page(aot_);
  window_.add_page(coverage_, tr("operator coverage"));
  auto themed = [this](const views::Theme& theme) {
    passes_->set_theme(theme);
    aot_->set_theme(theme);
    coverage_->set_theme(theme);
  };
  connect(&window_, &views::MainWindow::theme_changed, this, themed);
  themed(window_.theme());

  auto choose = [this](const QString& node) { selection_.select_node(node); };
  connect(passes_, &views::PassesView::node_chosen, this, choose);
  connect(aot_, &views::AotView::node_chosen, this, choose);
  connect(aot_, &views::AotView::pin_asked, this, &Workbench::pin);
  connect(passes_, &views::PassesView::run_asked, this, &Workbench::run_passes);
  connect(passes_, &views::PassesView::step_chosen, this, &Workbench::show_step);

  if (tools_.joint)
    window_.add_command("Graph", tr("Make the joint graph"), QKeySequence("Ctrl+J"), [this] { make_joint(); });
  window_.add_command("Graph", tr("Run the passes"), QKeySequence("Ctrl+P"), [this] { run_passes(); });
  window_.add_command("Graph", tr("Next pass"), QKeySequence("Ctrl+Right"), [this] { passes_->go_by(1, false); });
  window_.add_command("Graph", tr("Previous pass"), QKeySequence("Ctrl+Left"), [this] { passes_->go_by(-1, false); });
  window_.add_command("Graph", tr("Next pass that changed something"), QKeySequence("Ctrl+Shift+Right"),
                      [this] { passes_->go_by(1, true); });
  window_.add_command("Graph", tr("Previous pass that changed something"), QKeySequence("Ctrl+Shift+Left"),
                      [this] { passes_->go_by(-1, true); });
  window_.add_command("Graph", tr("Forward and backward beside each other"), QKeySequence("Ctrl+B"),
                      [this] { show_aot(); });
  window_.add_command("Graph", tr("The picture"), QKeySequence("Ctrl+G"), [this] { show_view("graph"); });
  window_.add_command("View", tr("Operator coverage"), {}, [this] { show_view("coverage"); });
}

void Workbench::run_passes() {
  if (!current_ || !current_->graph) return;
  window_.show_bottom(tr("Passes"));
  auto graph = current_->graph;
  QString key = current_->key;
  PassStage stage = stage_of(current_->kind);
  jobs_.start<std::shared_ptr<const views::PassFilm>>(
      tr("Passes of %1").arg(current_->title), "passes:" + key, this,
      [graph, stage, width = text_width_](const Progress& progress) -> Result<std::shared_ptr<const views::PassFilm>> {
        PassContext context;
        PipelineOptions options;
        options.snapshots = true;
        options.progress = &progress;
        auto copy = graph->clone();
        std::vector<Pass> passes = passes_of(stage);
        TRY(PipelineRun run, partita::run_passes(*copy, passes, context, options));
        return std::make_shared<const views::PassFilm>(views::make_film(run, width));
      },
      [this, key](Result<std::shared_ptr<const views::PassFilm>> film) {
        if (!film) return report(film.error());
        film_of_ = key;
        if (auto of = documents_.find(key); of != documents_.end())
          for (const auto& [node, pass] : views::pass_of_nodes(**film, 0)) of->second->facts[node].pass = pass;
        passes_->set_film(*film);
        tell_overlays();
      });
}

void Workbench::show_step(int step) {
  const views::PassFilm* film = passes_->film();
  if (!film || !current_ || film_of_ != current_->key) return;
  const views::PassStep& chosen = film->steps[step];
  if (!chosen.scene) return;
  window_.show_page(window_.graph());
  window_.graph()->set_changes(chosen.diff ? chosen.diff->marks : std::unordered_map<std::string, views::Change>{});
  views::Facts facts = current_->facts;
  for (auto& [node, fact] : facts) fact.pass.clear();
  for (const auto& [node, pass] : views::pass_of_nodes(*film, step)) facts[node].pass = pass;
  window_.graph()->set_facts(std::move(facts));
  window_.graph()->set_scene(chosen.scene, true);
  window_.graph()->set_ghosts(chosen.removed);
  QString first;
  if (chosen.diff)
    for (const views::DiffLine& line : chosen.diff->lines)
      if (first.isEmpty() && (line.change == views::Change::Added || line.change == views::Change::Changed))
        first = text(line.node);
  if (!first.isEmpty()) window_.graph()->select(first);
  window_.set_status(step == 0 ? tr("before the passes") : tr("after %1").arg(chosen.name), {});
}

void Workbench::make_joint() {
  if (!current_ || !current_->graph || !tools_.joint) return;
  auto graph = current_->graph;
  auto program = current_->artefact.program;
  QString parent = current_->key, path = current_->path, title = current_->title;
  using Made = std::shared_ptr<AotGraphs>;
  jobs_.start<Made>(
      tr("Joint graph of %1").arg(title), "joint:" + parent, this,
      [graph, program, joint = tools_.joint](const Progress&) -> Result<Made> {
        TRY(AotGraphs graphs, joint(*graph, program.get()));
        return std::make_shared<AotGraphs>(std::move(graphs));
      },
      [this, parent, path](Result<Made> made) {
        if (!made) return report(made.error());
        Made graphs = *made;
        auto add = [&](const char* name, const Graph* product, ArtefactKind kind) {
          auto document = std::make_unique<Document>();
          document->path = path;
          document->key = parent + "/" + name;
          document->title = tr("%1, made here").arg(name);
          document->kind = kind;
          document->artefact = Artefact::of_graph(std::shared_ptr<const Graph>(graphs, product));
          document->artefact.kind = kind;
          if (!documents_.contains(document->key)) add_document(std::move(document), {}, text(kind_name(kind)), parent);
        };
        add("joint", graphs->joint.get(), ArtefactKind::Joint);
        add("forward", graphs->partition.forward.get(), ArtefactKind::Forward);
        add("backward", graphs->partition.backward.get(), ArtefactKind::Backward);
        window_.tree()->expand(tree_.find(parent));
        show(parent + "/joint");
      });
}

void Workbench::show_aot() {
  window_.show_page(aot_);
  if (!current_ || !current_->cut) return aot_->set_pair(nullptr);
  auto graph = current_->graph;
  QString key = current_->key;
  PartitionOptions options = views::partition_options(*current_);
  jobs_.start<std::shared_ptr<const views::AotPair>>(
      tr("Forward and backward of %1").arg(current_->title), "aot", this,
      [graph, options, width = text_width_](const Progress&) -> Result<std::shared_ptr<const views::AotPair>> {
        TRY(Partition partition, partita::partition(*graph, options));
        auto kept = std::make_shared<Partition>(std::move(partition));
        auto pair = std::make_shared<views::AotPair>();
        views::PictureOptions picture;
        picture.text_width = width;
        pair->cut = std::make_shared<views::Cut>(views::Cut::of(*kept));
        pair->forward = views::make_scene(std::shared_ptr<const Graph>(kept, kept->forward.get()), picture);
        pair->backward = views::make_scene(std::shared_ptr<const Graph>(kept, kept->backward.get()), picture);
        return std::shared_ptr<const views::AotPair>(pair);
      },
      [this, key](Result<std::shared_ptr<const views::AotPair>> pair) {
        if (!pair) return report(pair.error());
        if (!current_ || current_->key != key) return;
        aot_->set_pair(*pair);
        aot_->select(selection_.spot().node);
      });
}

}  // namespace partita
