// Workbench: passes, comparison, forward and backward beside each other.
#include <QTreeView>

#include "app/workbench.h"
#include "core/compare/per_node.h"
#include "core/passes/pipeline.h"
#include "views/look/format.h"

namespace partita {
namespace {

QString text(std::string_view s) {
  return QString::fromUtf8(s.data(), static_cast<int>(s.size()));
}

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

Runner runner_of(const WorkbenchTools::Backend& backend, const Progress& progress) {
  return
      [compile = backend.make(progress)](const Graph& graph, std::vector<Value> inputs) -> Result<std::vector<Value>> {
        TRY(Executable run, compile(graph));
        return run(std::move(inputs));
      };
}

struct Comparison {
  Report report;
  double seconds = 0;
};

// The graph's own outputs, without a look inside.
Result<Report> compare_outputs(const Graph& graph, const std::vector<Value>& inputs, const Runner& expected,
                               const Runner& found, const Tolerance& tolerance) {
  TRY(std::vector<Value> for_expected, copy_values(inputs));
  TRY(std::vector<Value> for_found, copy_values(inputs));
  TRY(std::vector<Value> a, expected(graph, std::move(for_expected)));
  TRY(std::vector<Value> b, found(graph, std::move(for_found)));
  Report report;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    report.rows.push_back(compare_values("output." + std::to_string(i), a[i], b[i], tolerance));
  return report;
}

}  // namespace

void Workbench::wire_analyses() {
  passes_ = new views::PassesView;
  compare_ = new views::CompareView;
  aot_ = new views::AotView;
  coverage_ = new views::CoverageView;
  window_.add_bottom(compare_, tr("Compare"));
  window_.add_bottom(passes_, tr("Passes"));
  window_.add_page(aot_, tr("forward and backward"));
  window_.set_pair_page(aot_);
  window_.add_page(coverage_, tr("operator coverage"));
  auto themed = [this](const views::Theme& theme) {
    passes_->set_theme(theme);
    compare_->set_theme(theme);
    aot_->set_theme(theme);
    coverage_->set_theme(theme);
  };
  connect(&window_, &views::MainWindow::theme_changed, this, themed);
  themed(window_.theme());

  QStringList names;
  for (const auto& backend : tools_.backends) names << backend.name;
  compare_->set_backends(names);
  auto choose = [this](const QString& node) { selection_.select_node(node); };
  connect(passes_, &views::PassesView::node_chosen, this, choose);
  connect(compare_, &views::CompareView::node_chosen, this, choose);
  connect(aot_, &views::AotView::node_chosen, this, choose);
  connect(aot_, &views::AotView::pin_asked, this, &Workbench::pin);
  connect(passes_, &views::PassesView::run_asked, this, &Workbench::run_passes);
  connect(passes_, &views::PassesView::step_chosen, this, &Workbench::show_step);
  connect(compare_, &views::CompareView::run_asked, this, &Workbench::compare);

  if (tools_.joint)
    window_.add_command("Graph", tr("Make the joint graph"), QKeySequence("Ctrl+J"), [this] { make_joint(); });
  window_.add_command("Graph", tr("Run the passes"), QKeySequence("Ctrl+P"), [this] { run_passes(); });
  window_.add_command("Graph", tr("Next pass"), QKeySequence("Ctrl+Right"), [this] { passes_->go_by(1, false); });
  window_.add_command("Graph", tr("Previous pass"), QKeySequence("Ctrl+Left"), [this] { passes_->go_by(-1, false); });
  window_.add_command("Graph", tr("Next pass that changed something"), QKeySequence("Ctrl+Shift+Right"),
                      [this] { passes_->go_by(1, true); });
  window_.add_command("Graph", tr("Previous pass that changed something"), QKeySequence("Ctrl+Shift+Left"),
                      [this] { passes_->go_by(-1, true); });
  window_.add_command("Graph", tr("Run and compare"), QKeySequence("Ctrl+R"), [this] { compare(compare_->request()); });
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

void Workbench::compare(const views::CompareRequest& request) {
  if (!current_ || !current_->graph) return;
  window_.show_bottom(tr("Compare"));
  const WorkbenchTools::Backend *expected = nullptr, *found = nullptr;
  for (const auto& backend : tools_.backends) {
    if (backend.name == request.expected) expected = &backend;
    if (backend.name == request.found) found = &backend;
  }
  if (!expected || !found) return;
  compare_->clear(tr("comparing…"));
  QString key = current_->key;
  auto graph = current_->graph;
  auto program = current_->artefact.program;
  jobs_.start<Comparison>(
      tr("Compare %1 with %2").arg(request.expected, request.found), "compare:" + key, this,
      [=, inputs_of = tools_.inputs](const Progress& progress) -> Result<Comparison> {
        auto start = std::chrono::steady_clock::now();
        progress.at(-1, "inputs");
        auto copy = graph->clone();
        TRY(std::vector<Value> inputs, inputs_of(*copy, program.get(), request.inputs));
        PerNodeOptions options;
        options.tolerance = request.tolerance;
        options.progress = &progress;
        Runner first = runner_of(*expected, progress), second = runner_of(*found, progress);
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
        return done;
      },
      [this, key, request](Result<Comparison> done) {
        if (!done) {
          compare_->clear(text(done.error().line()));
          return report(done.error());
        }
        int bad = 0;
        double worst = 0;
        std::string where;
        auto found_document = documents_.find(key);
        for (const Difference& d : done->report.rows) {
          bad += !d.ok();
          if (d.max_abs > worst) worst = d.max_abs, where = d.name;
          if (found_document == documents_.end()) continue;
          views::NodeFacts& facts = found_document->second->facts[d.name];
          facts.error = d.max_abs;
          facts.tolerance = d.ok() ? std::max(d.max_abs, request.tolerance.absolute) : request.tolerance.absolute;
        }
        QString summary =
            tr("%1 = %2: %3 compared, %4, worst %5%6 in %7")
                .arg(request.expected, request.found)
                .arg(done->report.rows.size())
                .arg(bad == 0 ? tr("all agree") : tr("%1 differ").arg(bad), views::error_text(worst),
                     where.empty() ? QString() : " at " + text(where), views::seconds_text(done->seconds));
        compare_->set_report(done->report, request.tolerance, summary);
        window_.set_status(summary, {});
        if (!current_ || current_->key != key) return;
        window_.graph()->set_facts(current_->facts);
        tell_overlays();
        measure(request.inputs);  // what the run was of is what its times are of
      });
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
